import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import Foundation
import GateVocabulary

/// `sendgate init`: everything a gateway in production begins with, and what is left for people to do.
struct InitCommand: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Makes a gateway's configuration, keys and signed starter bundle.",
        usage: """
            sendgate init
            sendgate init --origin NAME --unsubscribe-url URL --caller NAME=USER … [--app APP …]
            """,
        discussion: """
            Asks at a terminal for what no option says. Writes DIRECTORY/gate.yaml, DIRECTORY/policies (the starter bundle, signed), \
            DIRECTORY/root.key, STATE/keys, and one key for each role that signs bundles, in a directory of its own below ROLES. \
            Where the courier is installed and has no configuration, it writes that as well. Nothing is overwritten: what \
            is there already stops it before it writes anything.

            Run it as root. The keys belong to the gateway's user afterwards, the root key to root: the gateway gets it as a \
            credential of its unit.
            """)

    static let example = """
        sendgate init --origin gate.example.com/prod --unsubscribe-url https://example.com/u/ \\
          --caller payments=payments --app com.example.app
        """

    @Option(help: ArgumentHelp("The trail's name, for ever: a host and a path, in ASCII.", valueName: "name"))
    var origin: String?
    @Option(help: ArgumentHelp("Where the links in messages lead, with https.", valueName: "url"))
    var unsubscribeURL: String?
    @Option(
        help: ArgumentHelp(
            "A caller of the bundle, and the Unix user whose processes it is, by name or number. Repeatable.",
            valueName: "name=user"))
    var caller: [String] = []
    @Option(help: ArgumentHelp("An app that gets pushes, by its bundle id. Repeatable.", valueName: "app"))
    var app: [String] = []
    @Option(help: ArgumentHelp("The delivery layer's socket; the courier's when absent.", valueName: "path"))
    var hop: String?
    @Option(help: ArgumentHelp("Who may listen there. Repeatable.", valueName: "user"))
    var hopUser: [String] = []
    @Option(
        help: ArgumentHelp(
            "The directory of the gateway's socket, when systemd does not make it.", valueName: "dir"))
    var sockets: String?
    @Option(help: ArgumentHelp("Where configuration, bundle and root key go.", valueName: "dir"))
    var directory = "/etc/sendgate"
    @Option(help: ArgumentHelp("Where databases, trail and keys go.", valueName: "dir"))
    var state = "/var/lib/sendgate"
    @Option(
        help: ArgumentHelp("Where the keys of the roles go, until they are carried away.", valueName: "dir"))
    var roles = "/root/sendgate-roles"
    @Option(help: ArgumentHelp("The bundle to begin with; the starter when absent.", valueName: "dir"))
    var policies: String?
    @Option(help: ArgumentHelp("The user that the gateway runs as.", valueName: "user"))
    var user = "sendgate"
    @Option(help: ArgumentHelp("The courier's configuration, where it is to be written.", valueName: "file"))
    var courier = "/etc/sendgate-courier/courier.yaml"
    @OptionGroup var output: OutputOptions

    func run() async throws {
        let folder = try policies ?? DevelopmentGateway.repositoryPolicies()
        let bundle = try PolicyLoading.bundle(at: folder)
        var answers = SetupAnswers(origin: origin, unsubscribeURL: unsubscribeURL)
        answers.callers = try caller.map(SetupAnswers.binding)
        answers.apps = app
        if let hop { answers.hop = .init(path: hop, users: hopUser) }
        let callers = bundle.callers.keys.sorted().map(\.text)
        if let questions = SetupQuestions.atTerminal(Console.current) {
            try questions.complete(&answers, callers: callers)
        }
        let plan = try SetupPlan(
            answers, callers: callers,
            places: .init(
                directory: directory, state: state, roles: roles, sockets: sockets, courier: courier,
                policies: folder),
            user: user)
        try plan.requireRoom()
        let made = try SetupWork(plan).run()
        if output.json {
            Terminal.print([
                "made": .array(made.paths.map { .string($0) }),
                "left": .array(plan.left(made).map { .string($0) }),
            ])
            return
        }
        for path in made.paths { Terminal.note("made \(path)") }
        Terminal.print("What is left to do:")
        for (number, line) in plan.left(made).enumerated() { Terminal.print("\(number + 1). \(line)") }
    }
}
