import BundleModel
import ConfigurationPages

/// The file an operator writes, read as strictly as a page of the bundle: no aliases, no repeated keys, no
/// words that readers of YAML type differently, and nothing whose name is not known.
struct ConfigurationFile: Sendable {
    typealias Word = MappingReader.Word

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

    init() {}

    /// - Throws: ``ConfigurationDiagnostics`` when the file cannot be read at all. What is wrong inside it is in
    ///   ``diagnostics``, to be told together with everything else.
    init(at path: String) throws(ConfigurationDiagnostics) {
        switch try ConfigurationPage.read(path) {
        case .success(let root):
            let problems = ConfigurationProblems()
            read(MappingReader(root, file: path, problems: problems))
            diagnostics = problems.diagnostics
        case .failure(let found): diagnostics = found.diagnostics
        }
    }

    private mutating func read(_ page: MappingReader) {
        for setting in Setting.allCases where setting.group == nil {
            settings[setting] = Self.word(setting, in: page)
        }
        let grouped = Dictionary(grouping: Setting.allCases.filter { $0.group != nil }, by: \.group!)
        for (name, settings) in grouped.sorted(by: { $0.key < $1.key }) {
            guard let group = page.mapping(name) else { continue }
            for setting in settings { self.settings[setting] = Self.word(setting, in: group) }
            group.end()
        }
        listeners = page.mappings("listeners", countMax: Self.listenerCountMax).map(Listener.init)
        callers = page.named("callers", countMax: Self.callerCountMax).map { name, caller in
            defer { caller.end() }
            return Caller(
                name: Word(text: name, place: caller.place), users: caller.words("users"),
                groups: caller.words("groups"))
        }
        page.end()
    }

    private static func word(_ setting: Setting, in page: MappingReader) -> Word? {
        guard setting.isList else { return page.word(setting.name) }
        let texts = page.words(setting.name).map(\.text)
        guard page.has(setting.name) else { return nil }
        return Word(text: texts.joined(separator: ","), place: page.place(of: setting.name))
    }
}

extension ConfigurationFile.Listener {
    fileprivate init(_ listener: MappingReader) {
        place = listener.place
        path = listener.word("path")
        systemd = listener.word("systemd")
        directoryMode = listener.word("directory_mode")
        mode = listener.word("mode")
        socketMode = listener.word("socket_mode")
        enforceTypes = listener.words("enforce_types")
        enforceCallers = listener.words("enforce_callers")
        owner = listener.word("owner")
        group = listener.word("group")
        caller = listener.word("caller")
        users = listener.words("users")
        listener.end()
    }
}
