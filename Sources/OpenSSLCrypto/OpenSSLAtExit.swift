import COpenSSL

/// Keeps OpenSSL from freeing its tables when the process exits; called before `main`, and so before OpenSSL is used.
///
/// `exit` runs while other threads still hash, seal or end, and OpenSSL 3.0 takes no lock there against a thread that ends:
/// the process then dies of a segmentation fault in place of ending with its own code. The kernel takes the memory back, and
/// secrets are zeroed by what owns them, as ``SecretBytes`` does. Source: OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`.
@section(".init_array") @used
private let keepTablesAtExit: @convention(c) () -> Void = {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
}
