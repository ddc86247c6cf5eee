/* SPDX-License-Identifier: Apache-2.0
 * Error codes of AWS query APIs → kinds. EC2 and STS share them:
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 * https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html */
#include "aws/internal.h"

#include "doc/doc.h"

#include <time.h>

static const struct { char code[28]; RefusalKind kind; } codes[] = {
        { "RequestLimitExceeded",       REFUSAL_THROTTLED    },
        { "Throttling",                 REFUSAL_THROTTLED    },
        { "ThrottlingException",        REFUSAL_THROTTLED    },
        { "RequestThrottled",           REFUSAL_THROTTLED    },
        { "EC2ThrottledException",      REFUSAL_THROTTLED    },
        { "SlowDown",                   REFUSAL_THROTTLED    },
        { "PriorRequestNotComplete",    REFUSAL_TEMPORARY    },
        { "RequestTimeout",             REFUSAL_TEMPORARY    },
        { "InternalError",              REFUSAL_TEMPORARY    },
        { "InternalFailure",            REFUSAL_TEMPORARY    },
        { "Unavailable",                REFUSAL_TEMPORARY    },
        { "ServiceUnavailable",         REFUSAL_TEMPORARY    },
        { "IDPCommunicationError",      REFUSAL_TEMPORARY    }, /* by STS */
        /* a new instance is not known everywhere */
        { "InvalidInstanceID.NotFound", REFUSAL_TEMPORARY    },
        { "AuthFailure",                REFUSAL_SIGNATURE    },
        { "SignatureDoesNotMatch",      REFUSAL_SIGNATURE    },
        { "InvalidSignatureException",  REFUSAL_SIGNATURE    },
        { "InvalidClientTokenId",       REFUSAL_SIGNATURE    },
        { "RequestTimeTooSkewed",       REFUSAL_SIGNATURE    },
        { "RequestInTheFuture",         REFUSAL_SIGNATURE    },
        /* an old date, or old credentials */
        { "RequestExpired",             REFUSAL_EXPIRED      },
        { "ExpiredToken",               REFUSAL_EXPIRED      },
        { "ExpiredTokenException",      REFUSAL_EXPIRED      },
        { "UnauthorizedOperation",      REFUSAL_UNAUTHORIZED },
        { "AccessDenied",               REFUSAL_UNAUTHORIZED },
        { "AccessDeniedException",      REFUSAL_UNAUTHORIZED },
};

RefusalKind refusal_kind(const char *code) {
        return PICK(c, codes, ARRAY_SIZE(codes), streq(c->code, code), c->kind, REFUSAL_FINAL);
}

char *refusal_word(const Text *body, const char *path) {
        _strv_ char **found = NULL;
        if (body->size == 0 || xml_texts(body->data, body->size, path, &found) < 0 || !found)
                return NULL;
        size_t n = strspn(found[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_");
        return n > 0 && n <= 64 ? xstrndup(found[0], n) : NULL;
}

char *refusal_clock(const char *service, int64_t date) {
        if (date == 0)
                return xstrdup("its answer has no date to check this clock against");
        int64_t ahead = date - (int64_t)time(NULL);
        return xasprintf("the clock here is %lld s %s %s", (long long)(ahead < 0 ? -ahead : ahead),
                         ahead < 0 ? "ahead of" : "behind", service);
}
