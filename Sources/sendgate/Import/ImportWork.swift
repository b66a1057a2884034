import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import ImportFiles
import OpenSSLCrypto

/// One file on its way into the gateway.
struct ImportWork {
    var file: String
    var map: ImportMap
    /// Of the page that the map was read from; empty for lines of an import.
    var mapDigest: String
    var refusals: String
    var isDryRun: Bool
    var isReplacing: Bool
    var sender: any ImportSending

    struct Outcome {
        var tally: ImportTally
        var digest: String
        var isResumed: Bool
    }

    /// Batches that are sent while the next is read.
    private static let batchesUnderWayMax = 2

    func run() async throws -> Outcome {
        let (digest, byteCount) = try Self.digest(of: file)
        let descriptor = try Self.open(file)
        // The second descriptor has the same position, which is how far the first has read.
        let position = dup(descriptor)
        defer { close(position) }
        // A file that the map does not fit leaves no journal.
        var source = try ImportSource(descriptor, map, file: file)
        let journal = try ImportJournal(
            refusals,
            of: [
                "sha256": .string(digest), "map": .string(mapDigest), "dry_run": .boolean(isDryRun),
                "replace": .boolean(isReplacing),
            ])
        var progress = Progress("importing \(file)")
        defer { progress.end() }
        var builder = ImportBatchBuilder(work: self, skipping: journal.tally.recordCount)
        var underWay: [(users: Set<String>, task: Task<AnsweredBatch, any Error>)] = []
        func settleOldest() async throws {
            let oldest = underWay.removeFirst()
            do {
                try journal.add(try await oldest.task.value)
            } catch {
                for other in underWay { other.task.cancel() }
                throw error
            }
            progress.show(UInt64(max(lseek(position, 0, SEEK_CUR), 0)), of: UInt64(max(byteCount, 1)))
        }
        while true {
            let record = try source.next()
            let batches = builder.take(record, source: source)
            for batch in batches {
                // Two lines of one person keep their order.
                while underWay.count >= Self.batchesUnderWayMax
                    || underWay.contains(where: { !$0.users.isDisjoint(with: batch.users) })
                {
                    try await settleOldest()
                }
                let sender = sender
                underWay.append((batch.users, Task { try await sender.send(batch) }))
            }
            if record == nil { break }
        }
        while !underWay.isEmpty { try await settleOldest() }
        try journal.finish()
        return Outcome(tally: journal.tally, digest: digest, isResumed: journal.isResumed)
    }

    private static func open(_ file: String) throws -> Int32 {
        // Without O_NONBLOCK opening a pipe waits for whoever writes into it. Of a file it changes nothing.
        let descriptor = Foundation.open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw CommandFailure("cannot read `\(file)`: \(String(cString: strerror(errno)))")
        }
        guard ImportJournal.byteCount(ofFile: descriptor) != nil else {
            close(descriptor)
            throw CommandFailure(
                "`\(file)` is not a file",
                hint: "an import that is stopped reads its file again from the start")
        }
        return descriptor
    }

    private static func digest(of file: String) throws -> (digest: String, byteCount: Int) {
        let descriptor = try open(file)
        defer { close(descriptor) }
        var hasher = SHA256.Hasher()
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        var byteCount = 0
        while true {
            let count = piece.withUnsafeMutableBytes { read(descriptor, $0.baseAddress!, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CommandFailure("cannot read `\(file)`: \(String(cString: strerror(errno)))")
            }
            if count == 0 { break }
            hasher.update(piece[..<count])
            byteCount += count
        }
        return (Hexadecimal.encode(hasher.finalize().bytes), byteCount)
    }
}

/// The records of a file, whatever its format.
struct ImportSource: ~Copyable {
    // One of the two.
    private var csv: CSVReader?
    private var lines: NDJSONReader?
    let places: [Int]
    private let file: String

    init(_ descriptor: Int32, _ map: ImportMap, file: String) throws {
        self.file = file
        do throws(ImportFileError) {
            switch map.format {
            case .csv:
                let csv = try CSVReader(
                    descriptor: descriptor, separator: map.separator, encoding: map.encoding)
                places = try map.places(in: csv.columns).get()
                self.csv = consume csv
                lines = nil
            case .ndjson:
                let lines = try NDJSONReader(descriptor: descriptor, encoding: map.encoding)
                places = []
                csv = nil
                self.lines = consume lines
            }
        } catch {
            throw Self.failure(error, file, map)
        }
    }

    private static func failure(_ error: ImportFileError, _ file: String, _ map: ImportMap) -> CommandFailure
    {
        guard case .noLines = error else { return CommandFailure("`\(file)` \(error)") }
        return CommandFailure(
            "`\(file)` \(error)",
            hint: map.isPage
                ? "say in the map what it `reads`, and in which `encoding`"
                : "say with `--map PAGE` what each column is; the handbook's page \"Importing people\" has maps"
        )
    }

    mutating func next() throws -> ImportRecord? {
        do throws(ImportFileError) {
            if csv != nil { return try csv?.next() }
            return try lines?.next()
        } catch {
            throw CommandFailure("`\(file)` \(error)")
        }
    }
}

/// Makes batches of records: rows of one person that follow each other are one line, so that the person has one entry.
struct ImportBatchBuilder {
    private let work: ImportWork
    /// Records that an earlier start took in.
    private var skippedCount: Int64
    private var batch = ImportBatch()
    private var pending: (number: Int, user: String, line: JSONObject, recordCount: Int64)?

    init(work: ImportWork, skipping count: Int64) { (self.work, skippedCount) = (work, count) }

    /// Takes the next record in.
    ///
    /// - Parameter record: `nil` at the end.
    /// - Returns: The batches that are complete by it.
    mutating func take(_ record: ImportRecord?, source: borrowing ImportSource) -> [ImportBatch] {
        guard let record else {
            flush()
            return batch.recordCount == 0 ? [] : [cut()]
        }
        if skippedCount > 0 {
            skippedCount -= 1
            return []
        }
        switch record.content.flatMap({ work.map.line(of: $0, places: source.places) }) {
        case .failure(let problem):
            flush()
            refuse(record.line, problem.reason, problem.detail)
        case .success(let line):
            let user = line["user"]?.stringValue ?? ""
            // Lines without a person are nobody's in common: each is refused with its own number.
            if let earlier = pending, !user.isEmpty, earlier.user == user,
                let both = Self.merged(earlier.line, line)
            {
                pending = (earlier.number, user, both, earlier.recordCount + 1)
            } else {
                flush()
                pending = (record.line, user, line, 1)
            }
        }
        return batch.isFull ? [cut()] : []
    }

    private mutating func cut() -> ImportBatch {
        defer { batch = ImportBatch() }
        return batch
    }

    private mutating func refuse(_ number: Int, _ reason: String, _ detail: String, recordCount: Int64 = 1) {
        batch.refusals.append(.init(number: number, reason: reason, detail: detail))
        batch.recordCount += recordCount
    }

    private mutating func flush() {
        guard let (number, user, said, recordCount) = pending else { return }
        pending = nil
        var line = said
        if work.isDryRun { line["dry_run"] = true }
        if work.isReplacing { line["replace"] = true }
        let bytes = CanonicalJSON.write(.object(line))
        guard bytes.count <= ImportLimits.lineByteCountMax else {
            return refuse(
                number, "body_too_large",
                "the person has \(bytes.count) bytes; at most \(ImportLimits.lineByteCountMax) are accepted",
                recordCount: recordCount)
        }
        batch.lines.append(.init(number: number, bytes: bytes))
        batch.byteCount += bytes.count + 1
        batch.recordCount += recordCount
        batch.users.insert(user)
    }

    /// Consents and the like of one line.
    private static let elementCountMax = 64

    /// Two lines of one person in one; `nil` where they contradict each other.
    private static func merged(_ first: JSONObject, _ second: JSONObject) -> JSONObject? {
        var both = first
        for (name, value) in second.members {
            guard let known = both[name], known != value else {
                both[name] = value
                continue
            }
            switch (known, value) {
            case (.object(var things), .object(let more))
            where ["devices", "addresses", "withdrawals"].contains(name):
                for (key, thing) in more.members {
                    guard things[key] == nil || things[key] == thing else { return nil }
                    things[key] = thing
                }
                both[name] = .object(things)
            case (.array(let events), .array(let more)) where ["consents", "preferences"].contains(name):
                let all = events + more.filter { !events.contains($0) }
                guard all.count <= elementCountMax else { return nil }
                both[name] = .array(all)
            default: return nil
            }
        }
        return both
    }
}
