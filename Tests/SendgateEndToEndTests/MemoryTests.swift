import Foundation
import Glibc
import Testing

extension EndToEnd {
    /// What of the process's memory can leave it.
    @Suite struct MemoryTests {
        @Test func `a gateway leaves no core dump and no memory in a backtrace, and locks its keys`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            // What an operator may have set for other programs.
            try gate.start(environment: ["SWIFT_BACKTRACE": "enable=yes,color=no,registers=all"])
            func kernel(_ file: String, _ line: String) throws -> [Substring] {
                let text = try String(contentsOfFile: "/proc/\(gate.processID)/\(file)", encoding: .utf8)
                let found = text.split(separator: "\n").first { $0.hasPrefix(line) }
                return try #require(found).dropFirst(line.count).split { " \t".contains($0) }
            }
            #expect(try kernel("limits", "Max core file size").prefix(2) == ["0", "0"])
            let locked = try #require(Int(try kernel("status", "VmLck:")[0]))
            // A smaller limit than the smallest piece cannot be had everywhere; then it is told.
            #expect(locked >= 32 || gate.errors.contains("refused to lock"), "\(locked) kB")
            gate.signal(SIGABRT)
            _ = try gate.waitForEnd()
            #expect(!gate.errors.contains("Registers") && !gate.errors.contains("Crash"), "\(gate.errors)")
        }
    }
}
