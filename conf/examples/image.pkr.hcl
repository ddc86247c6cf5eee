# SPDX-License-Identifier: Apache-2.0
# A node image, built on the EKS image for NVIDIA GPUs: image.sh installs the package, and `nodestrap doctor` tests the result.
#
#   packer init image.pkr.hcl
#   packer build -var package=nodestrap-0.1.0-1.x86_64.rpm image.pkr.hcl
packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = ">= 1.2"
    }
  }
}

variable "region" {
  type    = string
  default = "us-west-2"
}

variable "kubernetes" {
  type    = string
  default = "1.34"
}

variable "package" {
  type = string
}

# The instance types that the image is for: doctor plans each.
variable "types" {
  type    = string
  default = "p4d.24xlarge,p5.48xlarge,p6-b200.48xlarge,g6.xlarge"
}

data "amazon-parameterstore" "eks" {
  region = var.region
  name   = "/aws/service/eks/optimized-ami/${var.kubernetes}/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
}

source "amazon-ebs" "node" {
  region                      = var.region
  source_ami                  = data.amazon-parameterstore.eks.value
  instance_type               = "m5.large"
  ssh_username                = "ec2-user"
  ami_name                    = "nodestrap-${var.kubernetes}-{{timestamp}}"
  associate_public_ip_address = true
  # nodestrap does not use version 1 of the metadata service.
  imds_support = "v2.0"
  metadata_options {
    http_tokens = "required"
  }
}

build {
  sources = ["source.amazon-ebs.node"]

  provisioner "file" {
    source      = var.package
    destination = "/tmp/nodestrap.rpm"
  }

  provisioner "file" {
    source      = "p5-48xlarge.userdata"
    destination = "/tmp/userdata"
  }

  provisioner "shell" {
    script           = "image.sh"
    environment_vars = ["PACKAGE=/tmp/nodestrap.rpm", "USERDATA=/tmp/userdata", "TYPES=${var.types}"]
    execute_command  = "sudo env {{ .Vars }} bash {{ .Path }}"
  }
}
