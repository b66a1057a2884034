import Foundation
import Testing

@testable import OpenSSLCrypto

@Suite struct LibraryTests {
    @Test func `a process ends in order while other threads still seal`() async {
        // Each exit is a race of its own between the handlers of exit(3) and the threads.
        for _ in 0..<20 {
            await #expect(processExitsWith: .exitCode(7)) {
                OpenSSLLibrary.outliveExit()
                let underWay = DispatchSemaphore(value: 0)
                for _ in 0..<4 {
                    Thread {
                        for count in 0... {
                            let key = try! AES256GCMKey(SecretBytes.random(byteCount: 32))
                            _ = try! key.seal([UInt8](repeating: 1, count: 64), aad: [])
                            if count == 0 { underWay.signal() }
                        }
                    }.start()
                }
                for _ in 0..<4 { underWay.wait() }
                exit(7)
            }
        }
    }
}
