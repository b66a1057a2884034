import BundleModel
import CanonicalJSON
import ConfigurationPages

/// The file an operator writes, read as strictly as a page of the bundle: no aliases, no repeated keys, no
/// words that readers of YAML type differently, and nothing whose name is not known.
struct ConfigurationFile: Sendable {
    /// A text as written, and where.
    struct Word: Hashable, Sendable {
        var text: String
        var place: String
    }

    struct Listener: Sendable {
        var place: String
        var path: Word?
        var systemd: Word?
        var directoryMode: Word?
        /// What becomes of sends; also the socket's mode, as it was written before the two had names of their own.
        var mode: Word?
        var socketMode: Word?
        var enforceTypes: [Word] = []
        var enforceCallers: [Word] = []
        var owner: Word?
        var group: Word?
        var caller: Word?
        var users: [Word] = []
    }

    struct Caller: Sendable {
        var name: Word
        var users: [Word] = []
        var groups: [Word] = []
    }

    /// Lists are joined with commas, as in the environment.
    private(set) var settings: [Setting: Word] = [:]
    private(set) var listeners: [Listener] = []
    private(set) var callers: [Caller] = []
    private(set) var diagnostics: [ConfigurationDiagnostic] = []

    static let listenerCountMax = 64
    static let callerCountMax = 1_000
    /// Users or groups of one caller or listener.
    static let accountCountMax = 1_000

    init() {}

    /// - Throws: ``ConfigurationDiagnostics`` when the file cannot be read at all. What is wrong inside it is in
    ///   ``problems``, to be told together with everything else.
    init(at path: String) throws(ConfigurationDiagnostics) {
        switch try ConfigurationPage.read(path) {
        case .success(let root): read(root, of: path)
        case .failure(let found): diagnostics = found.diagnostics
        }
    }

    // MARK: The tree

    private mutating func read(_ root: PolicyNode, of path: String) {
        guard case .mapping(let members) = root.value else {
            return refuse("must be a mapping of settings, and is \(root.shapeName)", at: path)
        }
        let groups = Set(Setting.allCases.filter { $0.components.count == 2 }.map { $0.components[0] })
        let single = Setting.allCases.filter { $0.components.count == 1 }.map(\.rawValue)
        for member in members {
            let place = place(of: member, in: path)
            if let setting = Setting(rawValue: member.key), setting.components.count == 1 {
                take(setting, member.value, place)
            } else if groups.contains(member.key) {
                readGroup(member, in: path)
            } else if member.key == "listeners" {
                readListeners(member.value, in: path)
            } else if member.key == "callers" {
                readCallers(member.value, in: path)
            } else {
                unknown(member.key, place, among: single + groups + ["listeners", "callers"])
            }
        }
    }

    private mutating func readGroup(_ group: PolicyNode.Member, in path: String) {
        guard case .mapping(let members) = group.value.value else {
            return refuse(
                "`\(group.key)` must be a mapping, and is \(group.value.shapeName)",
                at: place(of: group, in: path))
        }
        let known = Setting.allCases.filter { $0.components.count == 2 && $0.components[0] == group.key }
        for member in members {
            let place = place(of: member, in: path)
            if let setting = known.first(where: { $0.components[1] == member.key }) {
                take(setting, member.value, place)
            } else {
                unknown(member.key, place, among: known.map { $0.components[1] }, inside: group.key)
            }
        }
    }

    private mutating func take(_ setting: Setting, _ node: PolicyNode, _ place: String) {
        if setting.isList {
            let words = words(setting.rawValue, node, place)
            settings[setting] = Word(text: words.map(\.text).joined(separator: ","), place: place)
        } else if let word = word(setting.rawValue, node, place) {
            settings[setting] = word
        }
    }

    private mutating func readListeners(_ node: PolicyNode, in path: String) {
        guard case .list(let elements) = node.value, elements.count <= Self.listenerCountMax else {
            return refuse(
                "`listeners` must be a list of at most \(Self.listenerCountMax) sockets",
                at: node.location.map { "\($0)" } ?? path)
        }
        let known = [
            "path", "systemd", "directory_mode", "mode", "socket_mode", "owner", "group", "caller", "users",
            "enforce_types", "enforce_callers",
        ]
        for element in elements {
            let place = element.location.map { "\($0)" } ?? path
            guard case .mapping(let members) = element.value else {
                refuse("a listener must be a mapping, and is \(element.shapeName)", at: place)
                continue
            }
            var listener = Listener(place: place)
            for member in members {
                let place = self.place(of: member, in: path)
                switch member.key {
                case "path": listener.path = word("path", member.value, place)
                case "systemd": listener.systemd = word("systemd", member.value, place)
                case "directory_mode": listener.directoryMode = word("directory_mode", member.value, place)
                case "mode": listener.mode = word("mode", member.value, place)
                case "socket_mode": listener.socketMode = word("socket_mode", member.value, place)
                case "enforce_types": listener.enforceTypes = words("enforce_types", member.value, place)
                case "enforce_callers":
                    listener.enforceCallers = words("enforce_callers", member.value, place)
                case "owner": listener.owner = word("owner", member.value, place)
                case "group": listener.group = word("group", member.value, place)
                case "caller": listener.caller = word("caller", member.value, place)
                case "users": listener.users = words("users", member.value, place)
                default: unknown(member.key, place, among: known, inside: "listeners")
                }
            }
            listeners.append(listener)
        }
    }

    private mutating func readCallers(_ node: PolicyNode, in path: String) {
        guard case .mapping(let members) = node.value, members.count <= Self.callerCountMax else {
            return refuse(
                "`callers` must map at most \(Self.callerCountMax) caller names to their users and groups",
                at: node.location.map { "\($0)" } ?? path)
        }
        for member in members {
            let place = place(of: member, in: path)
            var caller = Caller(name: Word(text: member.key, place: place))
            guard case .mapping(let accounts) = member.value.value else {
                refuse("`callers.\(member.key)` must be a mapping of `users` and `groups`", at: place)
                continue
            }
            for account in accounts {
                let place = self.place(of: account, in: path)
                switch account.key {
                case "users": caller.users = words("users", account.value, place)
                case "groups": caller.groups = words("groups", account.value, place)
                default:
                    unknown(
                        account.key, place, among: ["users", "groups"], inside: "callers.\(member.key)")
                }
            }
            callers.append(caller)
        }
    }

    // MARK: Words

    private mutating func word(_ name: String, _ node: PolicyNode, _ place: String) -> Word? {
        switch node.value {
        case .text(let text) where (1...Setting.textByteCountMax).contains(text.utf8.count):
            return Word(text: text, place: place)
        case .text(let text):
            refuse(
                "`\(name)` must be 1 to \(Setting.textByteCountMax) bytes long, and has \(text.utf8.count)",
                at: place)
        case .integer(let integer): return Word(text: String(integer), place: place)
        default: refuse("`\(name)` must be a text or a number, and is \(node.shapeName)", at: place)
        }
        return nil
    }

    private mutating func words(_ name: String, _ node: PolicyNode, _ place: String) -> [Word] {
        guard case .list(let elements) = node.value, elements.count <= Self.accountCountMax else {
            refuse("`\(name)` must be a list of at most \(Self.accountCountMax) names or numbers", at: place)
            return []
        }
        return elements.compactMap { word(name, $0, $0.location.map { "\($0)" } ?? place) }
    }

    private func place(of member: PolicyNode.Member, in path: String) -> String {
        (member.keyLocation ?? member.value.location).map { "\($0)" } ?? path
    }

    private mutating func refuse(_ message: String, at place: String) {
        diagnostics.append(ConfigurationDiagnostic(message, at: place))
    }

    private mutating func unknown(
        _ key: String, _ place: String, among known: [String], inside group: String? = nil
    ) {
        let name = group.map { "\($0).\(key)" } ?? key
        let hint =
            NearestName.to(key, among: known).map { "did you mean `\($0)`?" }
            ?? "known here: \(known.sorted().map { "`\($0)`" }.joined(separator: ", "))"
        diagnostics.append(
            ConfigurationDiagnostic("`\(name)` is not a setting", at: place, hint: hint))
    }
}
