// FirstSend SOCKET ID USER
import Foundation
import SendgateClient

let (socket, id, user) = (CommandLine.arguments[1], CommandLine.arguments[2], CommandLine.arguments[3])
let gate = SendgateClient(socketPath: socket)

func fail(_ sentence: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(status)
}

guard FileManager.default.fileExists(atPath: socket) else {
    fail("no socket at \(socket): is the gateway running, and may this user enter the folder?", status: 75)
}

do {
    // Tries 408, 429, 503 and lost connections again by itself, with the same id.
    let answer = try await gate.send(
        Send(
            id: id, type: "transaction.remittance_sent", recipient: user,
            params: [
                "amount": .money(minor: 500_000, currency: "NOK"), "recipient_name": "Ahmad Karimi",
                "transaction_id": "0d4f5a3e-5c1b-4e52-9a1f-3f6f3d1f7a10",
            ]))
    print("\(answer.outcome.rawValue): \(answer.reason)\(answer.detail.map { " (\($0))" } ?? "")")
    for violation in answer.violations { print("  \(violation)") }
    exit(answer.isPromised ? 0 : 2)
} catch .refused(let problem) {
    let lines = ["\(problem.status) \(problem.title)"] + [problem.detail].compactMap { $0 }
    fail((lines + problem.violations.map { "  \($0)" }).joined(separator: "\n"), status: 1)
} catch .busy, .unreachable, .unanswered {
    fail("no answer yet: ask again later, with the id \(id)", status: 75)
} catch {
    fail("\(error)", status: 1)
}
