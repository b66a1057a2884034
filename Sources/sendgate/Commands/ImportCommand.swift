import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary
import ImportFiles
import OpenSSLCrypto

/// `sendgate import`: brings people over from another system.
struct ImportCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Brings people, devices and consents over from another system.",
        usage:
            "sendgate import FILE… [--map PAGE] [--dry-run] [--replace] [--refusals FILE] [--socket PATH] [--json]",
        discussion: """
            FILE has one person a line, as `POST /v1/import` takes them; with --map a page says what each column of an \
            export is. Everything goes over the socket of a caller with the grant `consents.import`. What is refused stands \
            in FILE.refused.ndjson, with its line and why. An import that was stopped goes on where it was, and a file may \
            be imported twice: nothing is recorded twice. Ends with 2 when something was refused.
            """)

    static let example = "sendgate import people.ndjson --dry-run --socket /tmp/gate/migration.sock"

    @Argument(help: ArgumentHelp("The files, one after the other.", valueName: "file")) var files: [String]
    @Option(help: ArgumentHelp("What each column is.", valueName: "page")) var map: String?
    @Flag(help: "Try everything and record nothing.") var dryRun = false
    @Flag(help: "Let what is registered otherwise give way.") var replace = false
    @Option(
        help: ArgumentHelp(
            "Where what is refused goes, of one file; beside it when absent.", valueName: "file"))
    var refusals: String?
    @OptionGroup var socket: SocketOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if files.isEmpty { throw ValidationError("name a file") }
        if refusals != nil, files.count > 1 { throw ValidationError("`--refusals` is of one file") }
    }

    func run() async throws {
        let path = try socket.path(environment: Console.current.environment)
        var page = ImportMap.lines
        var digest = ""
        if let map {
            page = try ImportMap.read(map)
            digest = Hexadecimal.encode(
                SHA256.digest(Array(FileManager.default.contents(atPath: map) ?? Data())).bytes)
        }
        var isRefused = false
        for file in files {
            let refusals = refusals ?? "\(file).refused.ndjson"
            let work = ImportWork(
                file: file, map: page, mapDigest: digest, refusals: refusals, isDryRun: dryRun,
                isReplacing: replace, sender: ImportSender(path: path))
            let outcome = try await work.run()
            isRefused = isRefused || outcome.tally.refusedCount > 0
            show(outcome, of: file, refusals)
        }
        if isRefused { throw ExitStatus.refusedByPolicy }
    }

    private func show(_ outcome: ImportWork.Outcome, of file: String, _ refusals: String) {
        if output.json {
            var json = outcome.tally.json
            json["file"] = .string(file)
            json["sha256"] = .string(outcome.digest)
            json["refusals"] = .string(refusals)
            json["dry_run"] = .boolean(dryRun)
            json["resumed"] = .boolean(outcome.isResumed)
            return Terminal.print(json)
        }
        let words = outcome.tally.words(
            file: file, digest: outcome.digest, map: map ?? "lines of an import", isDryRun: dryRun,
            refusals: refusals)
        for line in words { Terminal.print(Terminal.printable(line)) }
        if outcome.isResumed {
            Terminal.print(
                "The import was stopped before and went on. Lines that had been sent may count as unchanged.")
        }
    }
}
