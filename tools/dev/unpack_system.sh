#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Unpacks packages of Debian, with all that they depend on, into a folder: of another release, for
# a Python that this one lacks, or for another machine, to compile for it. Nothing of it is
# installed or run, and it needs no root. tools/wheel --system builds for such a folder.
#
# Usage: tools/dev/unpack_system.sh RELEASE ARCHITECTURE FOLDER PACKAGE...
#   tools/dev/unpack_system.sh sid amd64 /tmp/sid python3.14-dev python3.14-venv
#   tools/dev/unpack_system.sh bookworm arm64 /tmp/arm64 --for-tessera
# --for-tessera stands for what Tessera is built with, but for the tools that run here.
set -euo pipefail

if [ $# -lt 4 ]; then
  sed -n '4,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 2
fi
release="$1" architecture="$2" folder="$(mkdir -p "$3" && cd "$3" && pwd)"
shift 3
packages=()
for package in "$@"; do
  case "$package" in
    # MLIR's own description of itself names its tools, which have to be there.
    --for-tessera) packages+=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools g++ libzstd-dev
      zlib1g-dev libedit-dev libcurl4-openssl-dev libxml2-dev python3-dev python3-venv) ;;
    *) packages+=("$package") ;;
  esac
done

# An apt of its own, which knows of no package that is installed here.
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{etc/apt.conf.d,etc/preferences.d,etc/trusted.gpg.d,lists/partial,archives/partial}
touch "$scratch/status"
# The archives that this machine takes Debian from, and what has been mended in that release.
apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  while read -r origin uri codename; do
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    case "$origin/$codename" in
      Debian/*-updates) ;;
      Debian/*-security)
        if [ "$release" = "${codename%-security}" ]; then
          echo "deb [signed-by=$key] $uri $codename main"
        fi ;;
      Debian/*) echo "deb [signed-by=$key] $uri $release main" ;;
    esac
  done | sort -u >"$scratch/etc/sources.list"
[ -s "$scratch/etc/sources.list" ] || {
  echo "error: apt has no list of Debian's packages here; run 'apt-get update' first" >&2
  exit 1
}
cat >"$scratch/apt.conf" <<END
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
// A mirror may lag behind.
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Dir::Etc "$scratch/etc";
Dir::State::lists "$scratch/lists";
Dir::State::status "$scratch/status";
Dir::Cache "$scratch";
Debug::NoLocking "true";
END
export APT_CONFIG="$scratch/apt.conf"
apt-get update -q
apt-get install -y -q --download-only "${packages[@]}"

# The folders that newer releases have merged, whichever way a package names them.
for name in bin sbin lib lib64; do
  mkdir -p "$folder/usr/$name"
  [ -e "$folder/$name" ] || ln -s "usr/$name" "$folder/$name"
done
for archive in "$scratch"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$archive" |
    tar -x --keep-directory-symlink --no-same-owner -C "$folder" --exclude './dev/*'
done
# A link to a place in that system is one to a place in the folder.
find "$folder" -type l -lname '/*' | while read -r link; do
  ln -sfnr "$folder$(readlink "$link")" "$link"
done
echo "$(find "$scratch/archives" -name '*.deb' | wc -l) packages of $release for $architecture are in $folder"
