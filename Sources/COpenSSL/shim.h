// What OpenSSLCrypto needs of OpenSSL 3.0 and newer, and one call of the kernel that guards its secrets.
//
// The functions below exist because Swift cannot import function-like macros, and because
// OSSL_PARAM arrays hold pointers that are safest built and used inside one C scope.
#ifndef SENDGATE_COPENSSL_SHIM_H
#define SENDGATE_COPENSSL_SHIM_H

// SHA256_Init, _Update and _Final carry a deprecation mark since 3.0, in favour of EVP. They are used
// on purpose: their state is a plain value without heap memory, which makes a 65-byte Merkle node
// about twice as fast to hash as a reused EVP context does, and lets a keyed HMAC state be copied.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/prctl.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "sendgate needs OpenSSL 3.0 or newer"
#endif

// No core dump, and no attaching by other processes of the same user (prctl(2)); -1 when the kernel refuses. prctl is
// variadic, which does not import.
static inline int sendgate_forbid_dumps(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// The two hash states that make up one HMAC-SHA256 (RFC 2104): after the inner and the outer pad.
typedef struct {
    SHA256_CTX inner;
    SHA256_CTX outer;
} sendgate_hmac_sha256;

// A P-256 key from its uncompressed public point and, when `scalar` is not NULL, its 32-byte
// big-endian private scalar. NULL when OpenSSL refuses. The caller owns the result.
static inline EVP_PKEY *sendgate_p256_key_new(
    const unsigned char *point, size_t point_size, const unsigned char *scalar) {
    EVP_PKEY *key = NULL;
    BIGNUM *private_number = NULL;
    OSSL_PARAM *parameters = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (context == NULL || builder == NULL) goto done;
    if (!OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0)) goto done;
    if (!OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point_size)) goto done;
    if (scalar != NULL) {
        private_number = BN_secure_new();
        if (private_number == NULL || BN_bin2bn(scalar, 32, private_number) == NULL) goto done;
        BN_set_flags(private_number, BN_FLG_CONSTTIME);
        if (!OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, private_number)) goto done;
    }
    parameters = OSSL_PARAM_BLD_to_param(builder);
    if (parameters == NULL || EVP_PKEY_fromdata_init(context) <= 0) goto done;
    if (EVP_PKEY_fromdata(
            context, &key, scalar == NULL ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR, parameters) <= 0) {
        EVP_PKEY_free(key);
        key = NULL;
    }
done:
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(private_number);
    EVP_PKEY_CTX_free(context);
    return key;
}

// A P-256 public key like `pattern` but with another point, 65 bytes long. Four times as fast as
// sendgate_p256_key_new, which sets up the curve anew (measured on 3.0.19: 6 against 23 us). NULL when
// the bytes are no point of the curve. The caller owns the result.
static inline EVP_PKEY *sendgate_p256_key_like(EVP_PKEY *pattern, const unsigned char *point) {
    EVP_PKEY *key = EVP_PKEY_dup(pattern);
    if (key != NULL && EVP_PKEY_set1_encoded_public_key(key, point, 65) > 0) return key;
    EVP_PKEY_free(key);
    return NULL;
}

// A context that generates P-256 keys. NULL when OpenSSL refuses. The caller owns the result.
static inline EVP_PKEY_CTX *sendgate_p256_generation_new(void) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM parameters[2];
    parameters[0] = OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)"prime256v1", 0);
    parameters[1] = OSSL_PARAM_construct_end();
    if (context != NULL && EVP_PKEY_keygen_init(context) > 0 && EVP_PKEY_CTX_set_params(context, parameters) > 0) {
        return context;
    }
    EVP_PKEY_CTX_free(context);
    return NULL;
}

// Writes the 65-byte uncompressed point of `key`; 1 on success.
static inline int sendgate_p256_public_point(EVP_PKEY *key, unsigned char *point) {
    size_t size = 0;
    return EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, 65, &size) > 0 && size == 65
        && point[0] == 0x04;
}

static inline int sendgate_gcm_set_tag(EVP_CIPHER_CTX *context, const unsigned char *tag) {
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag);
}

static inline int sendgate_aead_get_tag(EVP_CIPHER_CTX *context, unsigned char *tag) {
    // EVP_CIPHER_CTX_ctrl makes the same array, and costs as much again.
    OSSL_PARAM parameters[] = {
        {OSSL_CIPHER_PARAM_AEAD_TAG, OSSL_PARAM_OCTET_STRING, tag, 16, 0},
        OSSL_PARAM_END,
    };
    return EVP_CIPHER_CTX_get_params(context, parameters);
}

#endif
