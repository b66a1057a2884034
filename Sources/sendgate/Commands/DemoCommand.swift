import ArgumentParser
import Foundation
import GateDemo

/// `sendgate demo`: the whole gate in under a minute, with real processes.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells the gate's story in a terminal, with real processes.",
        usage: "sendgate demo [--policies DIR] [--keep] [--provider FILE [--courier FILE] [--python FILE]]",
        discussion: """
            Starts a gateway, a delivery layer on its socket, an iPhone and an Android phone, and a marketing, \
            a payments, a security and an app-backend caller on sockets of their own; everything lives in a \
            temporary folder and is gone afterwards. With a program that stands in for Apple the courier delivers to it, too.

            Example: sendgate demo
            """,
        subcommands: [Delivery.self])

    @Option(help: "The bundle to decide by; the starter when absent.")
    var policies: String?

    @Flag(help: "Leave the folder behind and say where it is.")
    var keep = false

    @Option(help: "A program that stands in for Apple: `push_service.py` of the tests.")
    var provider: String?

    @Option(help: "`sendgate-courier`, where it is not beside this program.")
    var courier: String?

    @Option(help: "What runs the stand-in.")
    var python = "python3"

    func run() async throws {
        let tools = provider.map {
            DemoTools(courier: courier ?? Self.neighbour("sendgate-courier"), provider: $0, python: python)
        }
        try await DemoStory.tell(
            policies: policies ?? DevelopmentGateway.repositoryPolicies(), tools: tools, keepsFolder: keep)
    }

    private static func neighbour(_ name: String) -> String {
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: name).path
    }

    /// `sendgate demo delivery`
    struct Delivery: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delivery",
            abstract: "A delivery layer that writes down what it is given and sends nothing on.",
            usage: "sendgate demo delivery --socket PATH --record FILE",
            discussion:
                "Example: sendgate demo delivery --socket /tmp/delivery.sock --record delivered.ndjson")

        @Option(help: "Where to listen.")
        var socket: String

        @Option(help: "The file each message becomes a line of.")
        var record: String

        func run() async throws { try await DemoDelivery.run(socket: socket, record: record) }
    }
}
