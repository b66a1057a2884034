package import BundleModel
package import CanonicalJSON
package import CompliancePolicy
package import GateVocabulary

/// A small bundle written in code, complete enough to be read by the same reader as a real one.
///
/// Tests change one place of it and see what follows. It holds one type for each way a type can differ in
/// what the gates look at; ``TestType`` names them.
package struct TestBundle: Sendable {
    /// Every file by its path; `bundle.yaml` lists them by itself when read.
    package var documents: [String: JSONValue]

    /// Nothing in it is a problem.
    package static let minimal = TestBundle(documents: Self.pages)

    /// Replaces, adds or (with `nil`) removes the value at `path` in a file, making mappings on the way.
    package mutating func set(_ file: String, _ path: String..., to value: JSONValue?) {
        documents[file] = Self.replacing(documents[file] ?? .object(JSONObject()), path[...], value)
    }

    package func setting(_ file: String, _ path: String..., to value: JSONValue?) -> TestBundle {
        var copy = self
        copy.documents[file] = Self.replacing(documents[file] ?? .object(JSONObject()), path[...], value)
        return copy
    }

    private static func replacing(
        _ document: JSONValue, _ path: ArraySlice<String>, _ value: JSONValue?
    ) -> JSONValue? {
        guard let key = path.first else { return value }
        if case .array(var elements) = document, let index = Int(key), index <= elements.count {
            let old: JSONValue = index < elements.count ? elements[index] : .object(JSONObject())
            let new = replacing(old, path.dropFirst(), value)
            if index < elements.count { elements.remove(at: index) }
            if let new { elements.insert(new, at: index) }
            return .array(elements)
        }
        var object = document.objectValue ?? JSONObject()
        object[key] = replacing(object[key] ?? .object(JSONObject()), path.dropFirst(), value)
        return .object(object)
    }

    /// The documents as the reader takes them, the list of files filled in unless a test wrote one.
    package var nodes: [String: PolicyNode] {
        var documents = documents
        if documents["bundle.yaml"]?["files"] == nil {
            let files = documents.keys.filter { $0 != "bundle.yaml" }.sorted()
            documents["bundle.yaml"] = Self.replacing(
                documents["bundle.yaml"] ?? .object(JSONObject()), ["files"],
                .array(files.map { .string($0) }))
        }
        return documents.mapValues { PolicyNode(json: $0) }
    }

    package func read() -> Result<PolicyBundle, PolicyDiagnostics> { PolicyBundle.read(documents: nodes) }

    /// - Throws: Every problem of the bundle.
    package func compile() throws -> CompiledPolicy { CompiledPolicy(try read().get()) }

    /// What the reader complains of; empty for a good bundle.
    package var diagnostics: [PolicyDiagnostic] {
        switch read() {
        case .success: []
        case .failure(let diagnostics): diagnostics.diagnostics
        }
    }
}

/// The types of ``TestBundle/minimal``.
package enum TestType {
    /// Transactional, high, sealed with a generic stand-in, on every channel; digest above 5 an hour.
    package static let payment: TypeID = TypeID("payment")
    /// Transactional, high, sealed or nothing.
    package static let sealedOnly = TypeID("sealed_only")
    /// Transactional, personal, in full; only push.
    package static let statement = TypeID("statement")
    /// Transactional, personal, mandatory: passes preferences, quiet hours and caps.
    package static let duty = TypeID("duty")
    /// Transactional, high, needs the purpose `help`; passes hours and caps by the purpose `help_any_time`.
    package static let help = TypeID("help")
    /// Transactional, personal; goes out at 08:00 of the recipient's day.
    package static let briefing = TypeID("briefing")
    /// Social, personal, with a preference of its own.
    package static let comment = TypeID("comment")
    /// Marketing, open, on every channel; at most 2 a week, and 1 a day in its category.
    package static let promo = TypeID("promo")
    /// Security, high, on the critical list.
    package static let login = TypeID("login")
    /// Security, personal, not on the list.
    package static let notice = TypeID("notice")
    /// Security, high; sealed or nothing on push, with its code as a text: in Norway and the United Kingdom, in the United
    /// States until February 2026, in Singapore from then on.
    package static let code = TypeID("code")
    /// What the gateway itself sends in place of gathered payments and comments.
    package static let paymentsSummary = TypeID("payments_summary")
    package static let commentsSummary = TypeID("comments_summary")
    /// Registered, not enabled.
    package static let disabled = TypeID("disabled")
}

/// The callers of ``TestBundle/minimal``.
package enum TestCaller {
    package static let marketing = CallerName("marketing")
    package static let payments = CallerName("payments")
    /// May send security types and is named on the critical list.
    package static let security = CallerName("security")
    /// Holds `send.critical`, and the list does not name it.
    package static let deputy = CallerName("deputy")
    /// Writes what recipients choose, sends nothing.
    package static let app = CallerName("app")
    package static let stranger = CallerName("stranger")
}

extension AttestedRequest {
    package static func of(
        _ type: TypeID, by caller: CallerName? = nil, on channel: Channel = .push, critical: Bool = false
    ) -> AttestedRequest {
        let usual: CallerName =
            switch type {
            case TestType.promo, TestType.comment: TestCaller.marketing
            case TestType.login, TestType.notice, TestType.code: TestCaller.security
            case TestType.paymentsSummary, TestType.commentsSummary: .gateway
            default: TestCaller.payments
            }
        return AttestedRequest(caller: caller ?? usual, type: type, channel: channel, critical: critical)
    }
}
