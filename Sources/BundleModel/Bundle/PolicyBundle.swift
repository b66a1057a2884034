package import CanonicalJSON
package import GateVocabulary
import OpenSSLCrypto

/// One version of the policy, read and without a problem.
///
/// The model says what the files say, in types; ``CompiledPolicy`` makes decisions out of it. The files
/// themselves are kept as a tree, because their canonical form is what the digest covers and what an
/// archive holds.
package struct PolicyBundle: Sendable {
    package let name: String
    /// At least 1; a signed bundle only ever rises.
    package let version: Int
    package let effectiveFrom: CalendarDate
    /// Whether it is an example to begin with, which no company has made its own.
    package let isStarter: Bool
    /// Who writes, as recipients know the company.
    package let brand: String
    /// In which languages readers are written to.
    package let languages: ReaderLanguages
    /// `nil` only in a bundle without an e-mail that can be unsubscribed from.
    package let sender: Sender?
    package let categories: [GateVocabulary.Category: CategoryRule]
    package let regions: RegionRules
    package let callers: [CallerName: CallerRule]
    /// Who may do everything, in a bundle that ``DevelopmentCaller`` was added to; `nil` in every other.
    package let developmentCaller: CallerName?
    package let critical: [CriticalAllowance]
    package let channels: ChannelRules
    package let limits: LimitRules
    package let types: [TypeID: NotificationType]
    package let notices: [Notice.Key: Notice]
    /// What each notice asks for, by its id.
    package let noticeScopes: [String: Notice.Scope]
    /// By locale, the file's name without `.yaml`.
    package let messages: [String: LocaleMessages]
    /// What is said of decisions, by locale; English is the gateway's own.
    package let sentences: [String: Sentences]
    /// In the order of files and lines.
    package let cases: [PolicyCase]
    /// Every file by its path inside the bundle's folder; a notice is one text.
    package let documents: [String: PolicyNode]

    /// SHA-256 over ``canonicalJSON``.
    package let digest: PolicyDigest

    /// The purposes each notice asks about, by its id.
    package var noticePurposes: [String: [Purpose]] { noticeScopes.mapValues(\.purposes) }

    /// The bundle as one object, path to document: what is archived, signed and hashed.
    package static func canonicalForm(of documents: [String: PolicyNode]) -> [UInt8] {
        CanonicalJSON.write(JSONObject(documents.map { ($0.key, $0.value.json) }))
    }

    /// SHA-256 over ``canonicalForm(of:)``.
    package static func digest(of documents: [String: PolicyNode]) -> PolicyDigest {
        PolicyDigest(Hexadecimal.encode(SHA256.digest(canonicalForm(of: documents)).bytes))
    }

    /// RFC 8785 bytes; ``read(archive:)`` reads them back.
    package var canonicalJSON: [UInt8] { Self.canonicalForm(of: documents) }

    /// Reads and checks a bundle.
    ///
    /// - Parameter documents: Every file but editors' schemas, by path; notices as texts.
    /// - Returns: The bundle, or **every** problem it has.
    package static func read(documents: [String: PolicyNode]) -> Result<PolicyBundle, PolicyDiagnostics> {
        let list = DiagnosticList()
        let bundle = PolicyBundle(documents, list)
        for diagnostic in bundle.check() { list.add(diagnostic) }
        return list.diagnostics.isEmpty ? .success(bundle) : .failure(PolicyDiagnostics(list.diagnostics))
    }

    /// What is wrong with the pages that could be read, when others could not.
    ///
    /// - Parameters:
    ///   - documents: The readable ones.
    ///   - unreadable: Paths of the rest. What is said of them, or may be true only because they are not
    ///     there, is left out: an author who mends them is told in the next round.
    package static func diagnostics(
        of documents: [String: PolicyNode], without unreadable: Set<String>
    ) -> [PolicyDiagnostic] {
        guard case .failure(let found) = read(documents: documents) else { return [] }
        let names = unreadable.map { path in
            let file = path.split(separator: "/").last ?? ""
            return path.hasPrefix("types/") ? String(file.dropLast(".yaml".count)) : path
        }
        let locales = unreadable.compactMap { name(of: $0, in: "messages/", ".yaml") }
        return found.diagnostics.filter { diagnostic in
            !unreadable.contains(diagnostic.file) && !names.contains { diagnostic.message.contains($0) }
                && !locales.contains { diagnostic.message.contains("leads to `\($0)`") }
        }
    }

    /// Reads what an archive kept. Problems have no lines then.
    ///
    /// An archived bundle was checked before it was in force, by the checks of its day; those of today are not put to it,
    /// and a rule that is none any more is passed over. So what decided once can be asked again years later. Nothing loads
    /// from an archive what is to be in force.
    ///
    /// - Parameter archive: ``canonicalJSON`` of a bundle, as one JSON value.
    package static func read(archive: JSONValue) -> Result<PolicyBundle, PolicyDiagnostics> {
        guard case .object(let files) = archive else {
            return .failure(
                PolicyDiagnostics([
                    PolicyDiagnostic(file: "bundle", message: "the archive is not an object of files")
                ]))
        }
        var documents: [String: PolicyNode] = [:]
        for (path, document) in files {
            // Swift's texts take two paths that differ in how an accent is composed for one; no file of a
            // bundle is named outside ASCII.
            guard path.utf8.allSatisfy({ $0 < 0x80 }) else {
                let message = "the archive names a file outside ASCII"
                return .failure(PolicyDiagnostics([PolicyDiagnostic(file: "bundle", message: message)]))
            }
            documents[path] = PolicyNode(json: document)
        }
        let list = DiagnosticList(takesUnknownNames: true)
        let bundle = PolicyBundle(documents, list)
        return list.diagnostics.isEmpty ? .success(bundle) : .failure(PolicyDiagnostics(list.diagnostics))
    }

    private init(_ documents: [String: PolicyNode], _ list: DiagnosticList) {
        self.documents = documents
        digest = Self.digest(of: documents)

        func reader(_ file: String) -> NodeReader {
            guard let node = documents[file] else {
                list.add(PolicyDiagnostic(file: file, message: "the file is missing"))
                // A stand-in that complains of nothing: its own list goes nowhere.
                return NodeReader(PolicyNode(.mapping([])), file: file, list: DiagnosticList())
            }
            return NodeReader(node, file: file, list: list)
        }

        let cover = CoverPage(reader("bundle.yaml"), of: documents)
        name = cover.name
        version = cover.version
        effectiveFrom = cover.effectiveFrom
        isStarter = cover.isStarter
        brand = cover.brand
        languages = cover.languages
        sender = cover.sender

        categories = CategoryRule.page(reader("categories.yaml"))
        regions = RegionRules(reader("regions.yaml"))

        var callers = CallerRule.page(reader("callers.yaml"))
        var critical = CriticalAllowance.page(reader("critical.yaml"))

        var developmentCaller: CallerName?
        if let page = documents[DevelopmentCaller.page] {
            let reader = NodeReader(page, file: DevelopmentCaller.page, list: list)
            let (name, rule) = DevelopmentCaller.read(reader)
            if callers[name] != nil { reader.problem("names `\(name)`, who is in callers.yaml already") }
            callers[name] = rule
            // The development caller may ask for what any caller may ask for; the list itself grows by nothing.
            for index in critical.indices { critical[index].callers.append(name) }
            developmentCaller = name
        }
        self.callers = callers
        self.critical = critical
        self.developmentCaller = developmentCaller

        channels = ChannelRules(reader("channels.yaml"))
        limits = LimitRules(reader("limits.yaml"))

        let eventScopes = Self.eventScopes(in: documents)
        var types: [TypeID: NotificationType] = [:]
        var notices: [Notice.Key: Notice] = [:]
        var messages: [String: LocaleMessages] = [:]
        var sentences: [String: Sentences] = [:]
        var casePages: [NodeReader] = []
        for file in documents.keys.sorted() {
            let reader = NodeReader(documents[file]!, file: file, list: list)
            if let name = Self.name(of: file, in: "types/", ".yaml") {
                let type = NotificationType(
                    reader, eventScope: eventScopes[TypeID(name)] ?? TypeID(name), appLinks: cover.appLinks)
                if type.id.text != name {
                    let other = "types/\(type.id).yaml"
                    let isTaken = documents[other] != nil
                    list.add(
                        PolicyDiagnostic(
                            file: file, at: reader.node.location(of: ["type"]),
                            "`type` is `\(type.id)`, and the file says `\(name)`"
                                + (isTaken ? "; \(other) is that type already" : ""),
                            hint: isTaken
                                ? "one type would shadow the other; name this one `\(name)`"
                                : "a type's file is named after it"))
                }
                types[TypeID(name)] = type
            } else if let locale = Self.name(of: file, in: "messages/", ".yaml") {
                messages[locale] = LocaleMessages(locale: locale, reader)
            } else if let locale = Self.name(of: file, in: Sentences.folder, ".yaml") {
                sentences[locale] = Sentences(locale: locale, reader)
            } else if Self.name(of: file, in: "cases/", ".yaml") != nil {
                casePages.append(reader)
            } else if file.hasPrefix("notices/") {
                guard let key = Notice.Key(path: file) else {
                    list.add(
                        PolicyDiagnostic(
                            file: file, message: "is not named like a notice",
                            hint: "notices/<id>.<version>.<language>.txt"))
                    continue
                }
                notices[key] = Notice(key: key, text: reader.text(byteCountMax: 65_536))
            } else if !Self.pages.contains(file), file != DevelopmentCaller.page,
                file != Notice.purposesPage
            {
                list.add(PolicyDiagnostic(file: file, message: "is no file a bundle has"))
            }
        }
        self.types = types
        self.notices = notices
        noticeScopes =
            documents[Notice.purposesPage].map {
                Notice.scopes(NodeReader($0, file: Notice.purposesPage, list: list))
            } ?? [:]
        self.messages = messages
        self.sentences = sentences
        cases = casePages.flatMap { PolicyCase.read($0, types: types) }
    }

    /// The files every bundle has.
    package static let pages: Set<String> = [
        "bundle.yaml", "categories.yaml", "regions.yaml", "callers.yaml", "critical.yaml", "channels.yaml",
        "limits.yaml",
    ]

    /// What the events of each type are told under: the broadest type it is a variant of (`sub_of`), or itself.
    private static func eventScopes(in documents: [String: PolicyNode]) -> [TypeID: TypeID] {
        var broader: [TypeID: TypeID] = [:]
        for (file, page) in documents {
            guard let name = name(of: file, in: "types/", ".yaml"),
                case .text(let other) = page["sub_of"]?.value
            else { continue }
            broader[TypeID(name)] = TypeID(other)
        }
        return Dictionary(
            uniqueKeysWithValues: broader.keys.map { id in
                var (scope, length) = (id, 0)
                // No chain is longer than there are types; one that leads back is a problem of its page.
                while let next = broader[scope], length < broader.count {
                    (scope, length) = (next, length + 1)
                }
                return (id, scope)
            })
    }

    private static func name(of file: String, in folder: String, _ ending: String) -> String? {
        guard file.hasPrefix(folder), file.hasSuffix(ending) else { return nil }
        let name = file.dropFirst(folder.count).dropLast(ending.count)
        return name.isEmpty || name.contains("/") ? nil : String(name)
    }

    /// Where in a file a rule stands, for problems found after reading.
    package func location(_ file: String, _ path: [String]) -> SourceLocation? {
        documents[file]?.location(of: path)
    }
}
