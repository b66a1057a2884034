import COpenSSL

/// OpenSSL as a part of this process.
package enum OpenSSLLibrary {
    /// Keeps the library's tables until the process is gone. Call it before anything else of this module.
    ///
    /// By default they are freed by a handler of exit(3), while other threads may still hash and seal: a gateway that has
    /// done all its work would end with a signal (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`).
    package static func outliveExit() {
        let result = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        precondition(result == 1, "OpenSSL cannot be initialised")
    }
}
