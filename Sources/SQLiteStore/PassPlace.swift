import Foundation
import Glibc

/// How far a pass is, in a small file of the state directory: a gateway that is started again goes on there. Nothing is decided by
/// it, so it has no code, and what cannot be read or written begins the pass anew.
package struct PassPlace: Sendable {
    private let path: String

    package init(in directory: String, _ name: String) { path = directory + "/" + name }

    /// Two numbers from 0 to 2⁴⁰; `nil` where there are none.
    package func read() -> (Int64, Int64)? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), text.utf8.count < 64 else {
            return nil
        }
        let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Int64($0) }
        guard numbers.count == 2, numbers.allSatisfy({ (0...1 << 40).contains($0) }) else { return nil }
        return (numbers[0], numbers[1])
    }

    package func write(_ one: Int64, _ other: Int64) {
        let opened = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard opened >= 0 else { return }
        defer { Glibc.close(opened) }
        let line = Array("\(one) \(other)\n".utf8)
        _ = Glibc.write(opened, line, line.count)
    }
}
