#!/usr/bin/env bash
# Makes the certificates of the tests again, all of them. They are good for a hundred years, so nobody needs to.
set -eu
cd "$(dirname "$0")"
days=36500
key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1.key"; }
# issue NAME SUBJECT EXTENSIONS [options of openssl ca]
issue() {
    local name=$1 subject=$2 extensions=$3
    shift 3
    key "$name"
    openssl req -new -key "$name.key" -subj "/CN=$subject" -out "$work/$name.csr"
    printf '%b' "basicConstraints=CA:FALSE\n$extensions\n" >"$work/extensions"
    openssl ca -batch -config "$work/config" -in "$work/$name.csr" -out "$name.pem" -extfile "$work/extensions" "$@" 2>/dev/null
}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
touch "$work/index"
cat >"$work/config" <<END
[ca]
default_ca = here
[here]
database = $work/index
new_certs_dir = $work
certificate = ca.pem
private_key = ca.key
rand_serial = yes
default_md = sha256
default_days = $days
policy = any
[any]
commonName = supplied
END
here="subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\nextendedKeyUsage=serverAuth"
key ca
openssl req -x509 -key ca.key -subj "/CN=takt test CA" -days $days -out ca.pem \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
issue server "takt test server" "$here" -notext
issue expired "takt test server of old" "$here" -notext -startdate 20200101000000Z -enddate 20200201000000Z
issue wrong "takt test server elsewhere" "subjectAltName=DNS:elsewhere.example\nextendedKeyUsage=serverAuth" -notext
issue client "takt test client" "extendedKeyUsage=clientAuth" -notext
# What `openssl req -x509` makes: an authority of one.
key self
openssl req -x509 -key self.key -subj "/CN=localhost" -days $days -out self.pem \
    -addext "subjectAltName=DNS:localhost,IP:127.0.0.1"
# Nobody is to issue more of them.
rm ca.key
