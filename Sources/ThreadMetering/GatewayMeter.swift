import CPerfEvent
import CanonicalJSON
import Foundation

/// What a measured gateway counts of itself when `sendgate bench` asks: `serve --dev DIR --meter EVENT`.
///
/// The gateway forbids other processes of its user to look into it, so it counts its own threads. Questions and answers
/// are lines over its standard input, a socket of the benchmark's:
///
///     → begin    ← {"counting":true} | {"refused":"…"}
///     → end      ← {"counts":{"engine":…,…}} | {"refused":"…"}
package enum GatewayMeter {
    /// Answers on a thread of its own until the other end is closed.
    package static func start(_ quantity: ThreadCounters.Quantity, on descriptor: Int32 = STDIN_FILENO) {
        let thread = Thread { answer(MeterLine(descriptor), quantity) }
        thread.start()
        thread.name = "meter"
    }

    private static func answer(_ line: MeterLine, _ quantity: ThreadCounters.Quantity) {
        let own = sendgate_own_thread()
        var kept: ThreadCounters?
        while line.read() != nil {
            do {
                let counters = try kept ?? ThreadCounters(quantity, except: own)
                // Probes stay until the process ends.
                if quantity == .allocations { kept = counters }
                defer { if kept == nil { counters.close() } }
                let before = try counters.read()
                line.write(["counting": true])
                _ = line.read()
                // A scaled count is an estimate, and the next one may be lower.
                let counts = try counters.read().map { stage, count in
                    let more = count > before[stage, default: 0] ? count - before[stage, default: 0] : 0
                    return (stage, JSONValue.integer(Int64(clamping: more)))
                }
                line.write(["counts": .object(JSONObject(counts))])
            } catch {
                line.write(["refused": .string("\(error)")])
            }
        }
    }
}

/// Lines over one socket, blocking.
package final class MeterLine {
    private let descriptor: Int32
    private var unread: [UInt8] = []

    package init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// - Returns: `nil` when the other end is closed.
    package func read() -> String? {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            unread += buffer[..<count]
        }
    }

    package func write(_ text: String) {
        let bytes = Array("\(text)\n".utf8)
        // A line is far shorter than what a socket takes at once; an end that is closed is met by the next read.
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    func write(_ object: JSONObject) { write(String(decoding: CanonicalJSON.write(object), as: UTF8.self)) }
}
