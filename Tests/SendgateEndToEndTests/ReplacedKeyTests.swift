import Foundation
import Testing

extension EndToEnd {
    /// The notice to a device key that is replaced, read where it leaves the gateway.
    @Suite struct ReplacedKeyTests {
        @Test
        func `the old key alone opens the notice of its replacement, and one that was stopped gets none`()
            throws
        {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            for (before, noticeCount) in [
                ("active", 1), ("suspended", 0), ("compromised", 0), ("lost", 0), ("retired", 0),
            ] {
                let phone = try Finished.run(
                    [Machine.python, Machine.peer("replace_key.py"), gate.folder, before], in: scratch,
                    within: 60)
                #expect(
                    phone.ending == .exit(0) && phone.output == "{\"notices\": \(noticeCount)}\n",
                    "\(before): \(phone)\n\(gate.errors)")
            }
            #expect(try gate.stop() == .exit(0), "\(gate.errors)")
            // Replay finds each notice decided as it was, on the facts of its place.
            try expectVerifies(gate, in: scratch)
        }
    }
}
