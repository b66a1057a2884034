#!/bin/sh
# Makes an authority and the certificates of a relay in the folder $1: good, for another name, expired, and signed by itself.
set -e
cd "$1"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
key ca
openssl req -x509 -new -key ca.key -days 2 -subj '/CN=Test authority' -out ca.pem \
    -addext 'basicConstraints=critical,CA:true' -addext 'keyUsage=critical,keyCertSign'
touch index.txt
cat > ca.cnf <<'END'
[ca]
default_ca = one
[one]
database = index.txt
new_certs_dir = .
rand_serial = yes
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
END
issue() { # name, alternative names, start, end
    key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" -addext "subjectAltName=$2" -out "$1.csr"
    openssl ca -batch -notext -config ca.cnf -in "$1.csr" -out "$1.pem" -startdate "$3" -enddate "$4"
}
yesterday=$(date -u -d '1 day ago' +%Y%m%d%H%M%SZ)
tomorrow=$(date -u -d '1 day' +%Y%m%d%H%M%SZ)
issue good 'DNS:localhost,IP:127.0.0.1' "$yesterday" "$tomorrow"
issue other 'DNS:relay.example' "$yesterday" "$tomorrow"
issue expired 'DNS:localhost,IP:127.0.0.1' 20200101000000Z "$yesterday"
key self
openssl req -x509 -new -key self.key -days 2 -subj /CN=localhost -addext 'subjectAltName=DNS:localhost' -out self.pem
