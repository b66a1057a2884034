import CanonicalJSON
import CommandTerminal
import Foundation
import ImportFiles

/// What an import leaves beside its file: what was refused, and how far it has come.
///
///     batch is answered → its refusals are appended → the tally, with their length, takes the place of the one before
///
/// A kill before the last step leaves refusals behind the length in the tally; the next start cuts them off and sends the batch again,
/// which records nothing twice.
final class ImportJournal {
    private let refusalsPath: String
    private let descriptor: Int32
    private var byteCount: Int64
    private let content: JSONObject
    private(set) var tally: ImportTally
    /// Whether an earlier start of the same import came so far.
    let isResumed: Bool

    private var statePath: String { "\(refusalsPath).state" }

    /// - Parameters:
    ///   - path: Where the refusals go.
    ///   - content: What the import is of; an unfinished one of something else is not gone on with.
    init(_ path: String, of content: JSONObject) throws {
        refusalsPath = path
        self.content = content
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else {
            throw CommandFailure(
                "cannot write `\(path)`: \(String(cString: strerror(errno)))",
                hint: "name a file of yours with `--refusals`")
        }
        guard Self.byteCount(ofFile: descriptor) != nil else {
            close(descriptor)
            throw CommandFailure(
                "`\(path)` is not a file",
                hint: "name one with `--refusals`; what is refused is cut off there where an import stopped")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw CommandFailure(
                "another import writes `\(path)`", hint: "wait for it, or name another file with `--refusals`"
            )
        }
        (tally, byteCount) = (ImportTally(), 0)
        let earlier = try Self.read("\(path).state")
        if let earlier, earlier["done"] != true {
            guard earlier["import"] == .object(content), let count = earlier["refusal_bytes"]?.integerValue,
                let tally = earlier["tally"]?.objectValue.flatMap({ ImportTally($0) })
            else {
                close(descriptor)
                throw CommandFailure(
                    "`\(path).state` is of an import of something else that was not finished",
                    hint:
                        "go on with the file, map and flags of then, or remove `\(path).state` to begin anew")
            }
            (self.tally, byteCount, isResumed) = (tally, count, true)
        } else {
            isResumed = false
        }
        guard lseek(descriptor, 0, SEEK_END) >= off_t(byteCount) else {
            close(descriptor)
            throw CommandFailure(
                "`\(path)` is shorter than when the import stopped, so refusals are missing",
                hint: "remove `\(path).state` to begin anew; nothing is recorded twice")
        }
        guard ftruncate(descriptor, off_t(byteCount)) == 0,
            lseek(descriptor, off_t(byteCount), SEEK_SET) == off_t(byteCount)
        else {
            throw CommandFailure("cannot write `\(path)`: \(String(cString: strerror(errno)))")
        }
    }

    deinit { close(descriptor) }

    /// - Returns: The size of an open file; `nil` of a pipe, a directory, or a descriptor that is none.
    static func byteCount(ofFile descriptor: Int32) -> Int64? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(status.st_size)
    }

    private static func read(_ path: String) throws -> JSONObject? {
        // A pipe in its place would wait for whoever writes into it.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        defer { if descriptor >= 0 { close(descriptor) } }
        var bytes: [UInt8] = []
        if let byteCount = byteCount(ofFile: descriptor), byteCount <= stateByteCountMax {
            bytes = [UInt8](repeating: 0, count: Int(byteCount))
            var count = 0
            while count < bytes.count {
                let place = count
                let more = bytes.withUnsafeMutableBytes {
                    Foundation.read(descriptor, $0.baseAddress! + place, $0.count - place)
                }
                if more < 0, errno == EINTR { continue }
                guard more > 0 else { break }
                count += more
            }
        }
        guard let state = try? CanonicalJSON.read(bytes, limits: .document).objectValue else {
            throw CommandFailure(
                "`\(path)` is not what an import writes", hint: "remove it to begin anew")
        }
        return state
    }

    /// Bytes of a state: a number for each part of a person and each reason.
    private static let stateByteCountMax: Int64 = 1 << 20

    /// Takes an answered batch in.
    func add(_ answered: AnsweredBatch) throws {
        var next = tally
        next.recordCount += answered.batch.recordCount
        var lines: [UInt8] = []
        func list(_ number: Int, _ pointer: String, _ reason: String, _ detail: String) {
            let refusal: JSONObject = [
                "line": .integer(Int64(number)), "pointer": .string(pointer), "reason": .string(reason),
                "detail": .string(detail),
            ]
            lines += CanonicalJSON.write(refusal)
            lines.append(UInt8(ascii: "\n"))
        }
        for refusal in answered.batch.refusals {
            next.refuse("lines", because: refusal.reason)
            list(refusal.number, "", refusal.reason, refusal.detail)
        }
        for (line, answer) in zip(answered.batch.lines, answered.answers) {
            for said in next.add(answer) { list(line.number, said.pointer, said.reason, said.detail) }
        }
        try append(lines)
        tally = next
        try keep(isDone: false)
    }

    func finish() throws { try keep(isDone: true) }

    private func append(_ bytes: [UInt8]) throws {
        guard Self.write(bytes, to: descriptor) else {
            throw CommandFailure("cannot write `\(refusalsPath)`: \(String(cString: strerror(errno)))")
        }
        byteCount += Int64(bytes.count)
    }

    /// Not synchronized: a power cut takes back some batches, which are then sent again.
    private func keep(isDone: Bool) throws {
        let state: JSONObject = [
            "done": .boolean(isDone), "import": .object(content), "refusal_bytes": .integer(byteCount),
            "tally": .object(tally.json),
        ]
        let part = "\(statePath).part"
        // What an import that was killed left there, or anybody else, is in the way and nothing to write into.
        unlink(part)
        let file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw CommandFailure("cannot write `\(part)`: \(String(cString: strerror(errno)))")
        }
        let isWritten = Self.write(CanonicalJSON.write(state), to: file)
        guard close(file) == 0, isWritten, rename(part, statePath) == 0 else {
            throw CommandFailure("cannot write `\(statePath)`: \(String(cString: strerror(errno)))")
        }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var left = bytes[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress!, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            left = left.dropFirst(count)
        }
        return true
    }
}
