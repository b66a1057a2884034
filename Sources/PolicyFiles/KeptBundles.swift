import BundleModel
import GateVocabulary
import OpenSSLCrypto
import Synchronization

/// Bundles by the files they were read from. A start reads its folder for the callers, for what is answered while the proof runs, and
/// to put it in force: files whose bytes are the same are not parsed and checked again.
package final class KeptBundles: Sendable {
    /// The newest last.
    private let bundles = Mutex<[(files: SHA256Digest, caller: CallerName?, bundle: PolicyBundle)]>([])
    private let countMax: Int

    /// - Parameter countMax: How many are kept, those read last.
    package init(countMax: Int) { self.countMax = countMax }

    func bundle(of files: SHA256Digest, with caller: CallerName?) -> PolicyBundle? {
        bundles.withLock { $0.last { $0.files == files && $0.caller == caller }?.bundle }
    }

    func add(_ bundle: PolicyBundle, of files: SHA256Digest, with caller: CallerName?) {
        bundles.withLock { bundles in
            bundles = Array((bundles + [(files, caller, bundle)]).suffix(countMax))
        }
    }
}
