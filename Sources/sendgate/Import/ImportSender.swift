import CanonicalJSON
import CommandTerminal
import Foundation
import UnixHTTPClient

/// Lines that go to the gateway together, and records between them that never were lines.
struct ImportBatch: Sendable {
    struct Line: Sendable {
        /// The record of the file, by the line where it begins.
        var number: Int
        var bytes: [UInt8]
    }

    /// A record that comes to no line of its own.
    struct Refusal: Sendable {
        var number: Int
        var reason: String
        var detail: String
    }

    var lines: [Line] = []
    var refusals: [Refusal] = []
    var recordCount: Int64 = 0
    var byteCount = 0
    /// Whom its lines are about.
    var users: Set<String> = []

    /// Half a thousand people are durable in a few milliseconds, and are sent again where the gateway was stopped meanwhile.
    static let lineCountMax = 512
    static let byteCountMax = 4 << 20

    var isFull: Bool { lines.count >= Self.lineCountMax || byteCount >= Self.byteCountMax }
}

/// A batch with the answer to each of its lines.
struct AnsweredBatch: Sendable {
    var batch: ImportBatch
    var answers: [JSONObject]
}

/// Where the batches of an import go.
protocol ImportSending: Sendable {
    /// - Throws: Where the import cannot go on.
    func send(_ batch: ImportBatch) async throws -> AnsweredBatch
}

/// Sends batches of an import, and sends again what was not taken.
///
/// Sending a line twice records it once, so whatever is not answered for good is sent again: all lines of a connection that broke
/// off, and each line for which there was no room.
final class ImportSender: ImportSending {
    private let configuration: UnixHTTPClientConfiguration

    private static let tryCountMax = 60
    private static let pauseMilliseconds = 500
    private static let answerMilliseconds: Int64 = 120_000

    init(path: String) {
        var configuration = UnixHTTPClientConfiguration(path: path)
        // An answer to a line is shorter than what may be refused of it.
        configuration.answerByteCountMax = 64 << 20
        self.configuration = configuration
    }

    /// - Throws: Where the gateway does not take imports from this process, or is away for longer than a restart takes.
    func send(_ batch: ImportBatch) async throws -> AnsweredBatch {
        var answers = [JSONObject?](repeating: nil, count: batch.lines.count)
        let client = UnixHTTPClient(configuration)
        var failure: any Error = CommandFailure("the gateway has no room for the import", hint: "try again")
        for number in 0..<Self.tryCountMax {
            let open = answers.indices.filter { answers[$0] == nil }
            if open.isEmpty { break }
            if number > 0 { try await Task.sleep(for: .milliseconds(Self.pauseMilliseconds)) }
            switch await ask(client, open.map { batch.lines[$0].bytes }) {
            case .success(let given):
                for (place, answer) in zip(open, given) {
                    let status = answer["status"]?.integerValue ?? 0
                    if status == 429 || status == 503 {
                        let why = answer["detail"]?.stringValue ?? answer["title"]?.stringValue ?? "\(status)"
                        failure = CommandFailure(
                            "the gateway takes nothing now: \(why)", hint: "try again; the import goes on")
                    } else {
                        answers[place] = answer
                    }
                }
            case .failure(let error as UnixHTTPError):
                failure = CommandFailure(
                    "the gateway does not answer: \(error)",
                    hint: "start it and import again; the import goes on")
            case .failure(let error):
                await client.close()
                throw error
            }
        }
        await client.close()
        let whole = answers.compactMap(\.self)
        guard whole.count == answers.count else { throw failure }
        return AnsweredBatch(batch: batch, answers: whole)
    }

    private func ask(_ client: UnixHTTPClient, _ lines: [[UInt8]]) async -> Result<[JSONObject], any Error> {
        var body: [UInt8] = []
        body.reserveCapacity(lines.reduce(0) { $0 + $1.count + 1 })
        for line in lines {
            body += line
            body.append(UInt8(ascii: "\n"))
        }
        let content = body
        let response: UnixHTTPResponse
        do {
            response = try await client.request(
                "POST", "/v1/import", headers: [("Content-Type", "application/x-ndjson")], body: content,
                timeoutMilliseconds: Self.answerMilliseconds)
        } catch {
            return .failure(error)
        }
        guard response.status == 200 else {
            let problem = (try? CanonicalJSON.read(response.body, limits: .document))?.objectValue
            let why = problem?["detail"]?.stringValue ?? "status \(response.status)"
            return .failure(CommandFailure("the gateway takes no import: \(why)"))
        }
        var answers: [JSONObject] = []
        for line in response.body.split(separator: UInt8(ascii: "\n")) {
            guard let answer = try? CanonicalJSON.read(Array(line), limits: .document).objectValue else {
                return .failure(CommandFailure("the gateway answered a line with something that is not JSON"))
            }
            answers.append(answer)
        }
        guard answers.count == lines.count else {
            return .failure(
                CommandFailure("the gateway answered \(answers.count) of \(lines.count) lines"))
        }
        // What this process may not do it may not do for any line.
        if let refused = answers.first(where: { [401, 403].contains($0["status"]?.integerValue) }) {
            return .failure(
                CommandFailure(
                    "the gateway takes no import from this process: \(refused["detail"]?.stringValue ?? "")",
                    hint:
                        "use the socket of a caller with the grant `consents.import` and those for what the lines have; the handbook's page \"Moving here\" makes one. The import goes on where it is"
                ))
        }
        return .success(answers)
    }
}
