import ArgumentParser
import GateDemo

/// `sendgate demo`: the whole gate in under a minute, with real processes.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells the gate's story in a terminal, with real processes.",
        usage: "sendgate demo [--policies DIR] [--keep]",
        discussion: """
            Starts a gateway, a delivery layer on its socket, an iPhone and an Android phone, and a marketing, \
            a payments, a security and an app-backend caller on sockets of their own; everything lives in a \
            temporary folder and is gone afterwards.

            Example: sendgate demo
            """,
        subcommands: [Delivery.self])

    @Option(help: "The bundle to decide by.")
    var policies = "Policies"

    @Flag(help: "Leave the folder behind and say where it is.")
    var keep = false

    func run() async throws { try await DemoStory.tell(policies: policies, keepsFolder: keep) }

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
