import ArgumentParser
import CanonicalJSON
import CommandTerminal

/// `sendgate devices …`: a person's devices and their keys, asked over the socket.
struct Devices: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists somebody's devices and their keys, and ends the use of keys.",
        subcommands: [DevicesList.self, DevicesKeys.self, DevicesRevoke.self])
}

/// `sendgate devices list`
struct DevicesList: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the devices of somebody.",
        usage: "sendgate devices list USER [--socket PATH] [--json]",
        discussion: "Push tokens are never shown. Needs the grant `subjects.read`.")

    static let example = "sendgate devices list u_42 --socket /tmp/gate/auditor.sock"

    @OptionGroup var options: RecipientOptions

    func run() async throws {
        let devices = Self.devices(of: try await options.held())
        if options.output.json { return Terminal.print(["devices": .array(devices)]) }
        var table = Table("device", "platform", "app", "pushed to", "permission", "seen at", "keys")
        for device in devices {
            func text(_ key: String) -> String { device[key]?.stringValue ?? "–" }
            table.add(
                Terminal.printable(text("device")), text("platform"), text("app"),
                device["active"] == true ? "yes" : "no", text("os_permission"), text("seen_at"),
                String(device["keys"]?.arrayValue?.count ?? 0))
        }
        guard !table.isEmpty else { return Terminal.print("no device is registered") }
        for line in table.lines { Terminal.print(line) }
    }

    /// As they are shown, without what the provider is asked with.
    static func devices(of person: JSONObject) -> [JSONValue] {
        (person["devices"]?.arrayValue ?? []).map { device in
            var shown = device.objectValue ?? [:]
            shown["token"] = nil
            return .object(shown)
        }
    }
}

/// `sendgate devices keys`
struct DevicesKeys: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Lists the keys of somebody's devices.",
        usage: "sendgate devices keys USER [--device DEVICE] [--socket PATH] [--json]",
        discussion:
            "Public halves and states; the private ones never leave the devices. Needs the grant `subjects.read`."
    )

    static let example = "sendgate devices keys u_42 --device d_1 --socket /tmp/gate/auditor.sock"

    @OptionGroup var options: RecipientOptions
    @Option(help: ArgumentHelp("Only keys of this device.", valueName: "device")) var device: String?

    func run() async throws {
        var devices = DevicesList.devices(of: try await options.held())
        if let device {
            devices = devices.filter { $0["device"]?.stringValue == device }
            guard !devices.isEmpty else {
                throw CommandFailure(
                    "`\(options.user)` has no device `\(device)`", hint: "`sendgate devices list` names them")
            }
        }
        if options.output.json {
            return Terminal.print([
                "devices": .array(
                    devices.map { ["device": $0["device"] ?? .null, "keys": $0["keys"] ?? .array([])] })
            ])
        }
        var table = Table("device", "key", "suite", "state", "registered at")
        for device in devices {
            for key in device["keys"]?.arrayValue ?? [] {
                func text(_ name: String) -> String { key[name]?.stringValue ?? "–" }
                table.add(
                    Terminal.printable(device["device"]?.stringValue ?? "?"), text("key_id"), text("suite"),
                    text("state"),
                    text("created_at"))
            }
        }
        guard !table.isEmpty else { return Terminal.print("no key is registered") }
        for line in table.lines { Terminal.print(line) }
    }
}

/// `sendgate devices revoke`: a phone was lost, or somebody may have its key.
struct DevicesRevoke: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Ends the use of a device's keys for good.",
        usage:
            "sendgate devices revoke USER [--device DEVICE] --cause CAUSE [--dry-run] [--socket PATH] [--json]",
        discussion: """
            CAUSE is compromised (somebody else may hold the key: it is trusted no more), lost or retired. What waits for a \
            revoked key is decided again at once. Without --device the keys of every device of the person are revoked. The \
            same as `sendgate keys revoke --user`.
            """)

    static let example =
        "sendgate devices revoke u_42 --device d_1 --cause lost --socket /tmp/gate/security.sock"

    @Argument(help: ArgumentHelp("The person.", valueName: "user")) var user: String
    @Option(help: ArgumentHelp("Only keys of this device.", valueName: "device")) var device: String?
    @Option(help: ArgumentHelp("Why: compromised, lost or retired.", valueName: "cause")) var cause:
        KeysRevoke.Cause
    @OptionGroup var options: KeyChangeOptions

    func run() async throws {
        try await DeviceKeyRevocation(cause: cause, user: user, device: device, options: options).run()
    }
}
