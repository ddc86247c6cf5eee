# SPDX-License-Identifier: Apache-2.0
# A launch template for Terraform, with 32 EFA interfaces, the user data of p5-48xlarge.userdata, and a script for cloud-init beside it.
# Run `nodestrap config check --strict -c file://p5-48xlarge.userdata` before `terraform apply`; in CI, check-node-configs.sh.
variable "image_id" {
  type = string
}

variable "security_group_ids" {
  type = list(string)
}

data "cloudinit_config" "node" {
  gzip          = false
  base64_encode = true

  part {
    content_type = "application/node.eks.aws"
    content      = file("${path.module}/p5-48xlarge.userdata")
  }

  part {
    content_type = "text/x-shellscript"
    content      = <<-SCRIPT
      #!/bin/sh
      echo "cloud-init runs this before containerd and kubelet are started"
    SCRIPT
  }
}

resource "aws_launch_template" "p5" {
  name_prefix   = "p5-"
  image_id      = var.image_id
  instance_type = "p5.48xlarge"
  user_data     = data.cloudinit_config.node.rendered

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  # The first one has the node's address; the others carry only EFA, and take no address.
  dynamic "network_interfaces" {
    for_each = range(32)
    content {
      network_card_index = network_interfaces.value
      device_index       = network_interfaces.value == 0 ? 0 : 1
      interface_type     = network_interfaces.value == 0 ? "efa" : "efa-only"
      security_groups    = var.security_group_ids
    }
  }
}
