/// One line that moves while long work goes on: on a terminal only, silent in a pipe.
package struct Progress {
    private let what: String
    private let isWatched: Bool
    private var shown: Int?

    package init(_ what: String) {
        self.what = what
        isWatched = Console.current.isWatched
    }

    package mutating func show(_ done: UInt64, of total: UInt64) {
        guard isWatched, total > 0 else { return }
        let percent = Int(done * 100 / total)
        guard percent != shown else { return }
        shown = percent
        Console.current.writeErrors(Array("\r\(what): \(percent) %".utf8))
    }

    /// Of work whose end is not known.
    package mutating func show(_ done: Int64, _ unit: String) {
        guard isWatched, Int(done) != shown else { return }
        shown = Int(done)
        Console.current.writeErrors(Array("\r\(what): \(done) \(unit)".utf8))
    }

    /// Takes the line away.
    package mutating func end() {
        guard shown != nil else { return }
        shown = nil
        Console.current.writeErrors(Array("\r\u{1B}[K".utf8))
    }
}
