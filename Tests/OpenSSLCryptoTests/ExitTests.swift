import Foundation
import OpenSSLCrypto
import Testing

/// OpenSSL keeps random state for each thread that draws bytes, and a thread that ends frees its own.
@Suite struct ExitTests {
    /// Of processes that let OpenSSL free its tables, one in five ends otherwise (measured with 3.0.19).
    @Test(arguments: 1...25) func `a process ends with its own code while its threads end`(_: Int) async {
        await #expect(processExitsWith: .exitCode(7)) {
            for _ in 0..<8 {
                Thread.detachNewThread {
                    // As many threads end as can be made, until the process is gone.
                    while true {
                        let ended = DispatchSemaphore(value: 0)
                        Thread.detachNewThread {
                            precondition((try! SecretBytes.random(byteCount: 16)).count == 16)
                            ended.signal()
                        }
                        ended.wait()
                    }
                }
            }
            for _ in 0..<2_000 { _ = try SecretBytes.random(byteCount: 16) }
            exit(7)
        }
    }
}
