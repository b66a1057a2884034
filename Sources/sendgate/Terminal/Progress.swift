import Foundation

/// One line that moves while long work goes on: on a terminal only, silent in a pipe.
struct Progress {
    private let what: String
    private let isWatched: Bool
    private var shown: Int?

    init(_ what: String) {
        self.what = what
        isWatched = Terminal.isWatched
    }

    mutating func show(_ done: UInt64, of total: UInt64) {
        guard isWatched, total > 0 else { return }
        let percent = Int(done * 100 / total)
        guard percent != shown else { return }
        shown = percent
        FileHandle.standardError.write(Data("\r\(what): \(percent) %".utf8))
    }

    /// Takes the line away.
    mutating func end() {
        guard shown != nil else { return }
        shown = nil
        FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
    }
}
