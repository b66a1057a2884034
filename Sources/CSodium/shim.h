// What OpenSSLCrypto needs of libsodium 1.0.18 and newer: Ed25519 signatures.
#ifndef SENDGATE_CSODIUM_SHIM_H
#define SENDGATE_CSODIUM_SHIM_H

#include <sodium/core.h>
#include <sodium/crypto_sign_ed25519.h>

#endif
