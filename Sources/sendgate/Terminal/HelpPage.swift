import ArgumentParser
import CommandTerminal

/// A command of `sendgate`, with an example that works when pasted.
protocol GateCommand: AsyncParsableCommand {
    /// The last lines of its help.
    static var example: String { get }
}

/// What `--help` shows: the synopsis first, what the command does, its options, and an example at the end.
///
/// swift-argument-parser finds the words; only their order is ours.
enum HelpPage {
    /// Answers an error of the parser: help and version on standard output, a usage error on standard error.
    ///
    /// - Returns: `nil` for every other error.
    static func answer(to error: any Error, arguments: [String]) -> ExitStatus? {
        switch Sendgate.exitCode(for: error) {
        case .success:
            // The parser asks standard output how wide it is; nothing else of a page depends on where it is printed.
            let help = Sendgate.fullMessage(for: error, columns: Console.current.isWatched ? nil : 80)
            Terminal.print(page(help, of: command(for: arguments)))
            return .done
        case .validationFailure:
            let command = command(for: arguments)
            let name = (["sendgate"] + command.path).joined(separator: " ")
            Terminal.error(worded(Sendgate.message(for: error)), hint: "see `\(name) --help`")
            return .usage
        default: return nil
        }
    }

    /// The parser's help in the order of this page.
    static func page(
        _ help: String, of command: (type: any ParsableCommand.Type, path: [String])
    ) -> String {
        var sections = help.split(separator: "\n\n", omittingEmptySubsequences: true)
            .map { $0.trimmingPrefix(while: \.isNewline) }
            .filter { !$0.isEmpty }
            .map(String.init)
        while sections.last?.last?.isNewline == true { sections[sections.count - 1].removeLast() }
        guard let usage = sections.firstIndex(where: { $0.hasPrefix("USAGE: ") }) else { return help }
        let synopsis = sections.remove(at: usage)
        if let first = sections.first, first.hasPrefix("OVERVIEW: ") {
            sections[0] = String(first.dropFirst("OVERVIEW: ".count))
        }
        sections.insert(synopsis, at: 0)
        if let type = command.type as? any GateCommand.Type {
            let lines = type.example.split(separator: "\n", omittingEmptySubsequences: false)
            sections.append((["EXAMPLE:"] + lines.map { "  \($0)" }).joined(separator: "\n"))
        }
        return sections.joined(separator: "\n\n")
    }

    /// The deepest command the arguments name.
    static func command(
        for arguments: [String]
    ) -> (type: any ParsableCommand.Type, path: [String]) {
        var type: any ParsableCommand.Type = Sendgate.self
        var path: [String] = []
        for argument in arguments where argument != "help" {
            guard !argument.hasPrefix("-"),
                let next = type.configuration.subcommands.first(where: { $0._commandName == argument })
            else { break }
            type = next
            path.append(argument)
        }
        return (type, path)
    }

    /// The parser's sentence as ours are written: lower-case, input in backticks, without a full stop.
    static func worded(_ text: String) -> String {
        var text = text.prefix(1).lowercased() + text.dropFirst()
        // An odd count means one of them is an apostrophe.
        if text.count(where: { $0 == "'" }).isMultiple(of: 2) { text = text.replacing("'", with: "`") }
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }
}

/// Who reads the answer: a person, or a program.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print the same facts as JSON.")
    var json = false
}
