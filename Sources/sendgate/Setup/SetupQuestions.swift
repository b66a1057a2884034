import CommandTerminal
import Foundation

/// Asks a person for what no option said. Questions go to standard error, so that standard output stays the result.
struct SetupQuestions {
    private let console: Console

    /// - Returns: `nil` where nobody sits at a terminal.
    static func atTerminal(_ console: Console) -> SetupQuestions? {
        isatty(console.inputDescriptor) == 1 ? SetupQuestions(console: console) : nil
    }

    init(console: Console) { self.console = console }

    /// - Parameter callers: Those of the bundle.
    func complete(_ answers: inout SetupAnswers, callers: [String]) throws {
        if answers.origin == nil {
            answers.origin = try ask(
                "The trail's name, for ever", standard: "gate.\(ProcessInfo.processInfo.hostName)/prod")
        }
        if answers.unsubscribeURL == nil {
            answers.unsubscribeURL = try ask("Where links in messages lead (https)", standard: nil)
        }
        if answers.callers.isEmpty {
            console.say("Which Unix user is each caller of the bundle? Empty where a caller is nobody yet.\n")
            for caller in callers {
                let user = try ask("  \(caller)", standard: "")
                if !user.isEmpty { answers.callers.append(.init(caller: caller, user: user)) }
            }
        }
        if answers.hop == nil {
            let path = try ask("The delivery layer's socket, or empty for sendgate-courier", standard: "")
            if !path.isEmpty {
                let users = try ask("  The user that listens there", standard: nil)
                answers.hop = .init(path: path, users: [users])
            }
        }
        if answers.apps.isEmpty {
            let text = try ask("Bundle ids of the apps, separated by spaces; empty for none", standard: "")
            answers.apps = text.split(separator: " ").map(String.init)
        }
    }

    /// Asks until there is an answer.
    ///
    /// - Parameter standard: What an empty line means; `nil` where something has to be said.
    private func ask(_ question: String, standard: String?) throws -> String {
        while true {
            let hint = (standard ?? "").isEmpty ? "" : " [\(standard ?? "")]"
            console.say("\(question)\(hint): ")
            guard let line = readLine() else {
                throw CommandFailure("the input ended before every question was answered")
            }
            let answer = line.trimmingCharacters(in: .whitespaces)
            if !answer.isEmpty { return answer }
            if let standard { return standard }
        }
    }

    /// Bytes of one answer.
    private static let lineByteCountMax = 4_096

    private func readLine() -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while bytes.count < Self.lineByteCountMax {
            let count = read(console.inputDescriptor, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self) }
            if byte == UInt8(ascii: "\n") { break }
            bytes.append(byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Console {
    /// Without a line break, so that the answer stands behind the question.
    fileprivate func say(_ text: String) { writeErrors(Array(text.utf8)) }
}
