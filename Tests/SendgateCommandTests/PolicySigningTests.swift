import GateRecords
import SealedFormat
import AuditTrail
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import Foundation
import GateSteps
import GateVocabulary
import GateTestKit
import GatewayPipeline
import KeyFiles
import OpenSSLCrypto
import PolicyFiles
import PolicyProof
import Testing
import TrailDirectory

@testable import sendgate

/// An approval is a signature of the role whose part of the bundle it is, and no path puts a bundle in force in
/// production that lacks one, or is altered, older or signed by a stranger.
@Suite struct PolicySigningTests {
    private let folder: TemporaryFolder
    private let policies: String
    /// The private key files, by role.
    private let keys: [ApprovalRole: String]

    init() async throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
        var keys: [ApprovalRole: String] = [:]
        for role in ApprovalRole.allCases { keys[role] = try await Self.makeKey(in: folder, role.rawValue) }
        self.keys = keys
    }

    private static func makeKey(in folder: TemporaryFolder, _ name: String) async throws -> String {
        let run = try await CommandLineRun(
            "keys", "init", "--only", "policy", "--directory", folder.path(name))
        try #require(run.status == 0, "\(run.errors)")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path(name))
        return "\(folder.path(name))/\(try #require(files.first { $0.hasPrefix("policy-") }))"
    }

    /// Signs what the folder holds and returns the key to pin. The command proves first; an attacker does not.
    ///
    /// - Parameter bundle: What the folder holds, where it is read already.
    @discardableResult
    private func sign(
        _ role: ApprovalRole = .compliance, with key: String? = nil, _ bundle: PolicyBundle? = nil
    ) throws -> NoteVerifierKey {
        let path = try #require(key ?? keys[role])
        let file = try PrivateKeyFile.read(path, roots: [:])
        let signer = try #require(NoteSigner(name: file.id, key: try Ed25519PrivateKey(seed: file.secret)))
        try PolicySignature.sign(
            role, of: bundle ?? PolicyLoading.bundle(at: policies), in: policies, by: signer)
        return signer.verifierKey
    }

    /// Every role signs what the folder holds.
    @discardableResult
    private func signAll() throws -> GatewayConfiguration.PolicySigning {
        var pinned: [ApprovalRole: [NoteVerifierKey]] = [:]
        let bundle = try PolicyLoading.bundle(at: policies)
        for role in ApprovalRole.allCases { pinned[role] = [try sign(role, bundle)] }
        return GatewayConfiguration.PolicySigning(keys: pinned)
    }

    /// The same with the command.
    private func signByCommand(_ role: ApprovalRole) async throws -> (key: NoteVerifierKey, pages: [String]?)
    {
        let run = try await CommandLineRun(
            "policy", "sign", policies, "--role", role.rawValue, "--key", try #require(keys[role]), "--json")
        try #require(run.status == 0, "\(run.errors)")
        let object = try CanonicalJSON.read(Array(run.output.dropLast().utf8))
        return (
            try #require(NoteVerifierKey(parsing: object["signed_by"]?.stringValue ?? "")),
            object["pages"]?.arrayValue?.compactMap(\.stringValue)
        )
    }

    private func path(of role: ApprovalRole) -> String { "\(policies)/\(role.rawValue).sig" }

    private func note(_ role: ApprovalRole = .compliance) throws -> SignedNote {
        try SignedNote(parsing: Array(Data(contentsOf: URL(filePath: path(of: role)))))
    }

    private func setVersion(_ new: Int, from old: Int) throws {
        try folder.edit("Policies/bundle.yaml", "version: \(old)", "version: \(new)")
    }

    /// What a gateway that pins one key for each role says of the folder.
    private func complaints(_ signing: GatewayConfiguration.PolicySigning) throws -> [String] {
        do throws(PolicyDiagnostics) {
            _ = try PolicySignature.verify(PolicyLoading.bundle(at: policies), in: policies, by: signing.keys)
            return []
        } catch {
            return error.diagnostics.map { "\($0.file): \($0.message)" }
        }
    }

    // MARK: Signing

    @Test func `half a signature that a killed command left is in nothing's way`() async throws {
        let part = path(of: .security) + OutputFile.unfinishedSuffix
        try Data("sendgate/policy/v2\n{".utf8).write(to: URL(filePath: part))
        let before = try PolicyLoading.bundle(at: policies).digest
        let signed = try await signByCommand(.security)
        #expect(try note(.security).attestations(by: [signed.key]).count == 1)
        #expect(!FileManager.default.fileExists(atPath: part))
        #expect(try PolicyLoading.bundle(at: policies).digest == before)
    }

    @Test func `a signature is a signed note over what its role approves, and no part of the digest`()
        async throws
    {
        let before = try PolicyLoading.bundle(at: policies)
        for role in ApprovalRole.allCases {
            let signed = try await signByCommand(role)
            let note = try note(role)
            #expect(try note.attestations(by: [signed.key]).map(\.key) == [signed.key])
            let lines = String(decoding: note.text, as: UTF8.self).split(separator: "\n")
            #expect(lines.first == "sendgate/policy/v2")
            let object = try CanonicalJSON.read(Array(try #require(lines.last).utf8))
            #expect(object["role"]?.stringValue == role.rawValue)
            #expect(object["name"]?.stringValue == before.name)
            #expect(object["pages"]?.objectValue.map { $0.map(\.key).sorted() } == signed.pages)
            guard role == .compliance else { continue }
            #expect(object["digest"]?.stringValue == before.digest.text)
            #expect(object["version"]?.integerValue == Int64(before.version))
            #expect(object["effective_from"]?.stringValue == "\(before.effectiveFrom)")
        }
        #expect(before.parts(signedAs: .security)?.keys.sorted() == ["callers.yaml", "critical.yaml"])
        for part in [
            "types/privacy.breach_notice.yaml", "messages/nb.yaml#privacy.breach_notice", "notices.yaml",
        ] {
            #expect(before.parts(signedAs: .legal)?[part] != nil)
        }
        #expect(try PolicyLoading.bundle(at: policies).digest == before.digest)
    }

    @Test func `two people sign as one role, each once, and a change makes both go`() async throws {
        let other = try await Self.makeKey(in: folder, "other")
        let signers = [try sign(), try sign(with: other)]
        try sign()
        let both = try note()
        #expect(both.signatures.count == 2)
        #expect(Set(try both.attestations(by: signers).map(\.key)) == Set(signers))
        try setVersion(2, from: 1)
        try sign()
        #expect(try note().signatures.map(\.name) == [signers[0].name])
    }

    @Test func `only a policy key signs, and only a bundle that passes`() async throws {
        let key = try #require(keys[.compliance])
        let made = try await CommandLineRun("keys", "init", "--directory", folder.path("gateway"))
        try #require(made.status == 0, "\(made.errors)")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path("gateway"))
        let trailKey = try #require(files.first { $0.hasPrefix("trail-") })
        func sign(with key: String) async throws -> CommandLineRun {
            try await CommandLineRun("policy", "sign", policies, "--role", "compliance", "--key", key)
        }
        let wrong = try await sign(with: folder.path("gateway/\(trailKey)"))
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("of the purpose `trail`"))
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let broken = try await sign(with: key)
        #expect(broken.status == 1)
        #expect(broken.errors.contains("did you mean `allow`?"))
        try folder.edit("Policies/critical.yaml", "alow:", "allow:")
        try folder.edit("Policies/limits.yaml", "window_hours: 24", "window_hours: 1")
        let unlawful = try await sign(with: key)
        #expect(unlawful.status == 1)
        #expect(unlawful.errors.contains("limits.yaml:"), "\(unlawful.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(policies)/compliance.sig"))
        let unnamed = try await CommandLineRun("policy", "sign", policies, "--key", key)
        #expect(unnamed.status == 64)
        #expect(unnamed.errors.contains("--role"), "\(unnamed.errors)")
    }

    // MARK: Roles

    /// A page, an edit of it, and the roles whose signature the edit takes away.
    private static let edits: [(page: String, old: String, new: String, roles: [ApprovalRole])] = [
        ("limits.yaml", "S0 says a few", "S0 writes of a few", [.compliance]),
        ("messages/en.yaml", "Money received", "Money came in", [.compliance]),
        ("critical.yaml", "is worthless five minutes later", "is worthless soon", [.compliance, .security]),
        ("types/card.blocked.yaml", "2027-11-02", "2028-02-02", [.compliance, .legal]),
        ("types/promo.offer.yaml", "hours: 12", "hours: 11", [.compliance]),
    ]

    @Test(arguments: edits.indices)
    func `a page that changed needs the signatures of its own roles again, and no others`(index: Int) throws {
        let edit = Self.edits[index]
        let signing = try signAll()
        #expect(try complaints(signing) == [])
        try folder.edit("Policies/\(edit.page)", edit.old, edit.new)
        let found = try complaints(signing)
        #expect(found.count == edit.roles.count, "\(found)")
        for role in edit.roles {
            let own = found.filter { $0.hasPrefix("\(role.rawValue).sig: signs other contents") }
            #expect(own.count == 1, "\(found)")
            if role != .compliance {
                #expect(own.first?.contains("`\(edit.page)` changed") == true, "\(found)")
            }
        }
        // Signed again by those alone, it passes.
        let edited = try PolicyLoading.bundle(at: policies)
        for role in edit.roles { try sign(role, edited) }
        #expect(try complaints(signing) == [])
    }

    /// What passes the check, the cases and the proof, because it is a matter of judgement: and whose.
    private static let judgements:
        [(what: String, page: String, old: String, new: String, roles: [ApprovalRole])] = [
            (
                "a channel more for an offer", "types/promo.referral.yaml", "channels:\n",
                "channels:\n  email: {body: generic}\n", [.compliance]
            ),
            (
                "a name more on the critical list", "critical.yaml", "allow:\n",
                """
                allow:
                  - type: card.blocked
                    callers: [security]
                    because: A card that is blocked at the till is found out about at once.
                    law: [PSD2 Art. 68(3)]
                    reviewed: "2026-11-02"

                """, [.compliance, .security]
            ),
            (
                "a softer law of a duty", "types/privacy.breach_notice.yaml",
                "GDPR Art. 34(1), UK GDPR Art. 34(1)",
                "Regulation (EU) 2022/2554 (DORA) Art. 19(3), UK PSRs 2017 reg. 99", [.compliance, .legal]
            ),
            (
                "a longer window of a duty", "types/card.blocked.yaml", "discharge_within: {hours: 1}",
                "discharge_within: {hours: 24}", [.compliance, .legal]
            ),
            (
                "a duty's words that sell", "messages/en.yaml", "card.blocked:\n  title: ",
                "card.blocked:\n  title: Ask for our new card! ", [.compliance, .legal]
            ),
            (
                "a channel more for a consent text", "notices.yaml",
                "    asks_for: [social]\n    channels: [email]",
                "    asks_for: [social]\n    channels: [email, sms]", [.compliance, .legal]
            ),
            (
                "a way more to agree", "notices.yaml", "  promo:\n    asks_for: [marketing]\n",
                "  promo:\n    asks_for: [marketing]\n    methods: [in_app_toggle, sms_keyword]\n",
                [.compliance, .legal]
            ),
            (
                "a grant that is not one too many", "callers.yaml",
                "grants: [trail.read, subjects.read, metrics.read]",
                "grants: [trail.read, metrics.read]", [.compliance, .security]
            ),
        ]

    @Test(arguments: Soak.part(of: judgements.indices, 1, "judgements"))
    func `what is judgement comes into force signed by its owner, and by nobody else`(index: Int) async throws
    {
        let edit = Self.judgements[index]
        let signing = try signAll()
        func start() async throws -> String? {
            do {
                try await GatewayFixture(in: folder.root, policies: policies, signing: signing).stop()
                return nil
            } catch let error as PolicyDiagnostics {
                return "\(error)"
            }
        }
        try folder.edit("Policies/\(edit.page)", edit.old, edit.new)
        try setVersion(2, from: 1)
        // It passes what a bundle is checked for, so nothing but the signature is in its way.
        try ProvedBundles.demand(CompiledPolicy(try PolicyLoading.bundle(at: policies)))
        let stale = try #require(try await start(), "\(edit.what) came into force under old signatures")
        for role in ApprovalRole.allCases {
            #expect(
                stale.contains("\(role.rawValue).sig: signs other") == edit.roles.contains(role), "\(stale)")
        }
        // Signed as the right roles, by the holder of another.
        for (role, other) in zip(edit.roles, edit.roles.map { $0 == .legal ? ApprovalRole.security : .legal })
        {
            try FileManager.default.removeItem(atPath: "\(policies)/\(role.rawValue).sig")
            try sign(role, with: keys[other])
        }
        let wrong = try #require(try await start(), "\(edit.what) came into force under another role's key")
        for role in edit.roles {
            #expect(wrong.contains("by no key that is pinned here for `\(role.rawValue)`"), "\(wrong)")
            try FileManager.default.removeItem(atPath: "\(policies)/\(role.rawValue).sig")
        }
        let unsigned = try #require(try await start(), "\(edit.what) came into force unsigned")
        for role in edit.roles {
            #expect(unsigned.contains("\(role.rawValue).sig: is missing"), "\(unsigned)")
        }
        for role in edit.roles { try sign(role) }
        #expect(try await start() == nil)
    }

    /// Which roles own a place of a page: a second table, written from the handbook.
    private static func owners(of file: String, _ path: [String], duties: Set<String>) -> Set<ApprovalRole> {
        switch file {
        case "critical.yaml", "callers.yaml": [.compliance, .security]
        case "categories.yaml", "regions.yaml", "channels.yaml", "notices.yaml": [.compliance, .legal]
        case _ where file.hasPrefix("notices/"): [.compliance, .legal]
        case _ where file.hasPrefix("types/"):
            duties.contains(String(file.dropFirst(6).dropLast(5))) ? [.compliance, .legal] : [.compliance]
        case _ where file.hasPrefix("messages/"):
            path.first.map { $0 == "generic" || duties.contains($0) } ?? true
                ? [.compliance, .legal] : [.compliance]
        default: [.compliance]
        }
    }

    /// Every scalar of a page with its path.
    private static func scalars(_ value: JSONValue, _ path: [String] = []) -> [(
        path: [String], value: JSONValue
    )] {
        switch value {
        case .object(let object): object.flatMap { scalars($0.value, path + [$0.key]) }
        case .array(let elements):
            elements.enumerated().flatMap { scalars($0.element, path + [String($0.offset)]) }
        default: [(path, value)]
        }
    }

    private static func replacing(_ page: JSONValue, _ path: ArraySlice<String>, _ value: JSONValue)
        -> JSONValue
    {
        guard let key = path.first else { return value }
        if case .array(var elements) = page, let index = Int(key) {
            elements[index] = replacing(elements[index], path.dropFirst(), value)
            return .array(elements)
        }
        var object = page.objectValue ?? JSONObject()
        object[key] = replacing(object[key] ?? .null, path.dropFirst(), value)
        return .object(object)
    }

    @Test func `whatever a difference names needs its owners' signatures anew, by their own keys`() throws {
        let before = try PolicyLoading.bundle(at: policies)
        let signing = try signAll()
        let originals = try Dictionary(
            uniqueKeysWithValues: ApprovalRole.allCases.map { role in
                (role, try Data(contentsOf: URL(filePath: path(of: role))))
            })
        func signer(_ role: ApprovalRole) throws -> NoteSigner {
            let file = try PrivateKeyFile.read(try #require(keys[role]), roots: [:])
            return try #require(NoteSigner(name: file.id, key: try Ed25519PrivateKey(seed: file.secret)))
        }
        let signers = try Dictionary(
            uniqueKeysWithValues: ApprovalRole.allCases.map { ($0, try signer($0)) })
        func complaints(_ bundle: PolicyBundle) -> [String] {
            do throws(PolicyDiagnostics) {
                _ = try PolicySignature.verify(bundle, in: policies, by: signing.keys)
                return []
            } catch {
                return error.diagnostics.map { "\($0.file): \($0.message)" }
            }
        }
        let duties = Set(before.types.values.filter { $0.mandatory != nil }.map(\.messageKey))
        let places = before.documents.sorted { $0.key < $1.key }.map { file, page in
            (file: file, scalars: Self.scalars(page.json))
        }
        let security = places.filter { $0.file == "critical.yaml" || $0.file == "callers.yaml" }
        let legal = places.filter { Self.owners(of: $0.file, ["x"], duties: []).contains(.legal) }
        var numbers = SeededNumbers(seed: Soak.seed("owners of differences"))
        let count = Soak.count(120, short: 12)
        var (tried, refused, byRole) = (0, 0, [ApprovalRole: Int]())
        while tried < count {
            // Two pages of more than a hundred are the security team's, and few are legal's.
            let drawn = tried % 8 == 0 ? security : tried % 8 == 1 ? legal : places
            let page = drawn[Int(numbers.next() % UInt64(drawn.count))]
            let place = page.scalars[Int(numbers.next() % UInt64(page.scalars.count))]
            let value: JSONValue =
                switch place.value {
                case .integer(let integer): .integer(integer + 1)
                case .boolean(let boolean): .boolean(!boolean)
                case .string(let text): .string(text + " x")
                default: "x"
                }
            var pages = before.documents
            guard let old = pages[page.file]?.json else { continue }
            pages[page.file] = PolicyNode(json: Self.replacing(old, place.path[...], value))
            guard case .success(let after) = PolicyBundle.read(documents: pages) else {
                refused += 1
                continue
            }
            let edits = PolicyEdit.all(from: before.documents, to: after.documents)
            #expect(edits.count == 1)
            tried += 1
            let owners = Self.owners(of: page.file, place.path, duties: duties)
            let what = "\(page.file) \(place.path)"
            // The signatures of what was there before.
            let stale = complaints(after)
            #expect(
                Set(stale.map { $0.prefix { $0 != "." } }) == Set(owners.map { Substring($0.rawValue) }),
                "\(what): \(stale)")
            // Each owner's part signed by the key of another role, and then by its own.
            for role in owners {
                byRole[role, default: 0] += 1
                let other = role == .legal ? ApprovalRole.security : .legal
                try FileManager.default.removeItem(atPath: "\(policies)/\(role.rawValue).sig")
                try PolicySignature.sign(role, of: after, in: policies, by: try #require(signers[other]))
            }
            let wrong = complaints(after)
            #expect(
                wrong.count == owners.count && wrong.allSatisfy { $0.contains("by no key") },
                "\(what): \(wrong)")
            for role in owners {
                try PolicySignature.sign(role, of: after, in: policies, by: try #require(signers[role]))
            }
            #expect(complaints(after) == [], "\(what)")
            for (role, bytes) in originals {
                try bytes.write(to: URL(filePath: path(of: role)))
            }
        }
        #expect(
            refused >= Soak.count(1, short: 0) && (byRole[.legal] ?? 0) > count / 12
                && (byRole[.security] ?? 0) > count / 60,
            "\(refused) \(byRole)")
    }

    @Test func `a duty that is dropped from the pages needs legal again`() throws {
        let signing = try signAll()
        let page = "Policies/types/security.bankid_consent.yaml"
        let text = try String(contentsOfFile: folder.path(page), encoding: .utf8)
        _ = try folder.file(
            page,
            text.replacing(
                "\nchannels:",
                with: """

                    mandatory:
                      law: [PSD2 Art. 79(1)]
                      passes: [preferences]
                      must_reach_within: a day
                      if_unreachable: letter
                      discharged_by: [letter]
                      discharge_within: {hours: 24}
                      review: "2027-11-02"
                    channels:
                    """))
        #expect(
            try complaints(signing).contains { $0.hasPrefix("legal.sig") && $0.contains("bankid_consent") })
        try sign(.legal)
        _ = try folder.file(page, text)
        let found = try complaints(signing)
        #expect(found.contains { $0.hasPrefix("legal.sig") && $0.contains("bankid_consent") }, "\(found)")
    }

    @Test func `a security text that sells needs legal, and needs it no more when it does not`() throws {
        let signing = try signAll()
        let page = "Policies/messages/en.yaml"
        let text = try String(contentsOfFile: folder.path(page), encoding: .utf8)
        _ = try folder.file(
            page, text.replacing("We stopped an attack", with: "We stopped an attack. See our offers"))
        let part = "messages/en.yaml#account_takeover_blocked"
        #expect(try complaints(signing).contains { $0.hasPrefix("legal.sig") && $0.contains(part) })
        try sign(.legal)
        #expect(try !complaints(signing).contains { $0.hasPrefix("legal.sig") })
        _ = try folder.file(page, text)
        #expect(try complaints(signing).contains { $0.hasPrefix("legal.sig") && $0.contains(part) })
    }

    @Test func `a key counts for the role it is pinned for, and a signature for the role it was made as`()
        throws
    {
        var signing = try signAll()
        // The key of compliance under the critical list.
        try FileManager.default.removeItem(atPath: "\(policies)/security.sig")
        try sign(.security, with: keys[.compliance])
        #expect(
            try complaints(signing).contains {
                $0.hasPrefix("security.sig") && $0.contains("by no key that is pinned here for `security`")
            })
        // The note of one role filed as another's: signed by a key pinned for it, and of other words.
        signing.keys[.security] = signing.keys[.compliance]
        try Data(contentsOf: URL(filePath: "\(policies)/compliance.sig"))
            .write(to: URL(filePath: "\(policies)/security.sig"))
        #expect(try complaints(signing).contains { $0.hasPrefix("security.sig: signs other contents") })
    }

    @Test func `show says for each role whether it signed what is there, and that a starter is one`()
        async throws
    {
        func show() async throws -> String {
            let run = try await CommandLineRun("policy", "show", "--policies", policies)
            #expect(run.status == 0, "\(run.errors)")
            return run.output
        }
        let unsigned = try await show()
        for role in ApprovalRole.allCases { #expect(unsigned.contains("\n\(role.rawValue): unsigned\n")) }
        #expect(unsigned.hasPrefix("a starter, an example to begin with: starter version 1"))
        let signing = try signAll()
        let name = try #require(signing.keys[.legal]?.first?.name)
        #expect(
            try await show().contains(
                "\nlegal: signed by \(name); only a gateway knows whether it pins the key\n"))
        try folder.edit("Policies/types/card.blocked.yaml", "2027-11-02", "2028-02-02")
        let changed = try await show()
        #expect(changed.contains("\nlegal: unsigned as it is now; what was signed were other contents\n"))
        #expect(changed.contains("\nsecurity: signed by "))
        let json = try await CommandLineRun("policy", "show", "--policies", policies, "--json")
        let object = try CanonicalJSON.read(Array(json.output.dropLast().utf8), limits: .document)
        #expect(object["starter"] == true)
        #expect(object["signatures"]?["legal"]?["state"] == "other_contents")
        #expect(object["signatures"]?["security"]?["state"] == "signed")
    }

    @Test func `readiness, status and entries say who approved the bundle in force, or that nobody did`()
        async throws
    {
        func told(by gate: GatewayFixture) async throws -> (detail: String?, metrics: String) {
            let ready = try await gate.ask("GET", "/readyz")
            let check = ready.object["checks"]?.arrayValue?.first { $0["name"]?.stringValue == "policy" }
            return (check?["detail"]?.stringValue, gate.wiring.healthChecks.metricsText)
        }
        do {
            let gate = try await GatewayFixture(in: folder.root, policies: policies)
            let unsigned = try await told(by: gate)
            #expect(
                unsigned.detail == "the bundle is the unsigned starter: an example that nobody has approved")
            #expect(unsigned.metrics.contains(",approved=\"\"} 1"))
            try await gate.stop()
        }
        let signing = try signAll()
        let again = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        let signed = try await told(by: again)
        #expect(signed.detail == nil)
        #expect(signed.metrics.contains(",approved=\"compliance,legal,security\"} 1"))
        try await again.stop()
        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        func approvals(_ index: UInt64) throws -> JSONValue? {
            try CanonicalJSON.read(try #require(try trail.reader.entry(index)))["approvals"]
        }
        #expect(try approvals(0) == [])
        // Each has the very signature that lies beside the pages.
        #expect(
            try approvals(2)
                == .array(
                    ApprovalRole.allCases.map { role in
                        let signatures = try note(role).signatures
                        try #require(signatures.count == 1)
                        return [
                            "key": .string(signing.keys[role]?.first?.name ?? ""),
                            "role": .string(role.rawValue),
                            "signature": .string(Base64.encode(signatures[0].bytes)),
                        ]
                    }))
    }

    @Test func `a review whose day has come is an alarm in a gateway that runs, and no bundle to change to`()
        async throws
    {
        // After the bundle's own first day, and before today.
        try folder.edit("Policies/types/card.blocked.yaml", "2027-11-02", "2026-11-10")
        // The gateway goes on: without it no recipient would hear of a blocked card at all.
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let told = "types/card.blocked.yaml:"
        let ready = try await gate.ask("GET", "/readyz")
        let check = ready.object["checks"]?.arrayValue?.first { $0["name"]?.stringValue == "policy" }
        #expect(check?["detail"]?.stringValue?.contains("1 reviews are due, the first: \(told)") == true)
        #expect(gate.wiring.healthChecks.metricsText.contains("sendgate_policy_reviews_lapsed 1\n"))
        #expect(gate.wiring.core.lapsedReviews().map(\.file) == ["types/card.blocked.yaml"])
        // Another bundle that says the same does not replace it.
        try setVersion(2, from: 1)
        await gate.wiring.reload.reload()
        let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal)
        #expect(refusal.reason.contains("has not been reviewed since"), "\(refusal.reason)")
        #expect(gate.wiring.policy.current.bundle.version == 1)
        try await gate.stop()
    }

    // MARK: Every path that loads one

    enum Path: String, CaseIterable { case start, signal, activate }

    enum Attack: String, CaseIterable {
        case stripped, strippedOfTheList, strippedOfDuties, altered, alteredSignature, signedByAStranger,
            older, sameVersionOtherContents
        case notANote

        var complaint: String {
            switch self {
            case .stripped: "compliance.sig: is missing: the starter bundle is not signed as `compliance`"
            case .strippedOfTheList:
                "security.sig: is missing: the starter bundle is not signed as `security`"
            case .strippedOfDuties: "legal.sig: is missing: the starter bundle is not signed as `legal`"
            case .altered: "compliance.sig: signs other contents than the folder has"
            case .alteredSignature: "does not verify"
            case .signedByAStranger: "by no key that is pinned here for `compliance`"
            case .older: "bundle.yaml: is version 1, and version 2 was in force already"
            case .sameVersionOtherContents:
                "bundle.yaml: is version 2 with other contents than the version 2 that was in force"
            case .notANote: "compliance.sig: the note is malformed"
            }
        }
    }

    private func mount(_ attack: Attack) async throws {
        let signature = "\(policies)/compliance.sig"
        switch attack {
        case .stripped: try FileManager.default.removeItem(atPath: signature)
        case .strippedOfTheList: try FileManager.default.removeItem(atPath: "\(policies)/security.sig")
        case .strippedOfDuties: try FileManager.default.removeItem(atPath: "\(policies)/legal.sig")
        case .altered:
            try setVersion(3, from: 2)
        case .alteredSignature:
            let text = try String(contentsOfFile: signature, encoding: .utf8)
            let place = text.index(text.endIndex, offsetBy: -8)
            let other = text[place] == "A" ? "B" : "A"
            _ = try folder.file(
                "Policies/compliance.sig", text.replacingCharacters(in: place...place, with: other))
        case .signedByAStranger:
            try setVersion(3, from: 2)
            try sign(with: try await Self.makeKey(in: folder, "stranger"))
        case .older:
            try setVersion(1, from: 2)
            try sign()
        case .sameVersionOtherContents:
            let page = try String(contentsOfFile: "\(policies)/messages/en.yaml", encoding: .utf8)
            let title = try #require(page.firstMatch(of: /title: "?[A-Z]/)).output
            _ = try folder.file(
                "Policies/messages/en.yaml",
                page.replacing(title, with: title.dropLast() + "Z", maxReplacements: 1))
            try signAll()
        case .notANote: _ = try folder.file("Policies/compliance.sig", "trust me\n")
        }
    }

    /// Each attack by every path.
    private static let attacks = Attack.allCases.flatMap { attack in Path.allCases.map { ($0, attack) } }

    @Test(arguments: Soak.part(of: attacks, 6, "attacks"))
    func `what is not signed as it should be never comes into force`(path: Path, attack: Attack) async throws
    {
        // Given a gateway that requires signatures, under version 2.
        try setVersion(2, from: 1)
        let signing = try signAll()
        if path == .start {
            try await GatewayFixture(in: folder.root, policies: policies, signing: signing).stop()
            try await mount(attack)
            let error = await #expect(throws: PolicyDiagnostics.self) {
                _ = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
            }
            #expect(error?.description.contains(attack.complaint) == true, "\(error.map { "\($0)" } ?? "")")
            return
        }
        let gate = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        let first = gate.wiring.policy.current.digest

        // When the folder is tampered with and read again.
        try await mount(attack)
        if path == .signal {
            await gate.wiring.reload.reload()
        } else {
            let digest = try PolicyLoading.bundle(at: policies).digest
            let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(digest.text)])
            #expect(reply.status == 422, "\(reply.object)")
            #expect(reply.object["detail"]?.stringValue?.contains(attack.complaint) == true)
        }

        // Then the old one decides, and readiness and trail say why.
        #expect(gate.wiring.policy.current.digest == first)
        let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal)
        #expect(refusal.reason.contains(attack.complaint), "\(refusal.reason)")
        try await gate.stop()
        let entries = try CopiedTrail(at: folder.path("gate/trail"))
        let entry = try CanonicalJSON.read(try #require(try entries.reader.entry(1)))
        #expect(entry["kind"]?.stringValue == "policy_refused")
        #expect(entry["policy"]?.stringValue == first.text)
        #expect(entry["caller"]?.stringValue == (path == .activate ? "dev" : nil))
    }

    @Test(arguments: [Path.signal, .activate])
    func `a higher version with a pinned signature comes into force, and stays after a restart`(
        path: Path
    ) async throws {
        let signing = try signAll()
        do {
            let gate = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
            try setVersion(7, from: 1)
            try sign()
            if path == .activate {
                let digest = try PolicyLoading.bundle(at: policies).digest.text
                let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(digest)])
                #expect(reply.status == 200, "\(reply.object)")
            } else {
                await gate.wiring.reload.reload()
            }
            #expect(gate.wiring.policy.current.bundle.version == 7)
            #expect(gate.wiring.healthChecks.reloads.lastRefusal == nil)
            try await gate.stop()
        }
        // The same version with the same contents is a restart.
        let again = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        #expect(again.wiring.policy.current.bundle.version == 7)
        try await again.stop()
    }

    @Test(arguments: [Path.signal, .activate])
    func `a bundle replaces another on its day, and not before`(path: Path) async throws {
        let tomorrow = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1000)).advanced(
            bySeconds: 86_400)
        let complaint = "`effective_from` is \(tomorrow.rfc3339.prefix(10)), and that day has not come"
        func date(_ day: Substring) async throws {
            let page = try String(contentsOfFile: "\(policies)/bundle.yaml", encoding: .utf8)
            _ = try folder.file(
                "Policies/bundle.yaml",
                page.replacing(/effective_from: "[0-9-]*"/, with: "effective_from: \"\(day)\""))
        }
        try await date("2026-11-02")
        do {
            let gate = try await GatewayFixture(in: folder.root, policies: policies)
            let first = gate.wiring.policy.current.digest
            try await date(tomorrow.rfc3339.prefix(10))
            if path == .signal {
                await gate.wiring.reload.reload()
            } else {
                let digest = try PolicyLoading.bundle(at: policies).digest
                let reply = try await gate.ask(
                    "POST", "/v1/policy/activate", ["digest": .string(digest.text)])
                #expect(reply.status == 422, "\(reply.object)")
            }
            #expect(gate.wiring.policy.current.digest == first)
            let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal)
            #expect(refusal.reason.contains(complaint), "\(refusal.reason)")
            try await gate.stop()
        }
        // A start has no other one to keep.
        let again = try await GatewayFixture(in: folder.root, policies: policies)
        #expect("\(again.wiring.policy.current.bundle.effectiveFrom)" == tomorrow.rfc3339.prefix(10))
        try await again.stop()
    }

    @Test(arguments: Path.allCases)
    func `a consent text edited in place is refused, and the next version of it is not`(path: Path)
        async throws
    {
        try await GatewayFixture(in: folder.root, policies: policies).stop()
        let page = "Policies/notices/promo.3.en.txt"
        let text = try String(contentsOfFile: folder.path(page), encoding: .utf8)
        let complaint = "has other words than were in force under this id and version"
        func edit() throws {
            _ = try folder.file(page, text + "And to our partners.\n")
            try setVersion(2, from: 1)
        }
        if path == .start {
            try edit()
            let error = await #expect(throws: PolicyDiagnostics.self) {
                _ = try await GatewayFixture(in: folder.root, policies: policies)
            }
            #expect(error?.description.contains(complaint) == true, "\(error.map { "\($0)" } ?? "")")
        }
        if path == .start { _ = try folder.file(page, text) }
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let first = gate.wiring.policy.current.digest
        if path != .start { try edit() }
        func load() async throws {
            if path == .activate {
                let digest = try PolicyLoading.bundle(at: policies).digest
                _ = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(digest.text)])
            } else {
                await gate.wiring.reload.reload()
            }
        }
        if path != .start {
            try await load()
            #expect(gate.wiring.policy.current.digest == first)
            let refusal = try #require(gate.wiring.healthChecks.reloads.lastRefusal)
            #expect(refusal.reason.contains(complaint), "\(refusal.reason)")
        }
        // The new words under a version of their own.
        _ = try folder.file(page, text)
        _ = try folder.file("Policies/notices/promo.4.en.txt", text + "And to our partners.\n")
        try folder.edit(
            "Policies/bundle.yaml", "  - notices/promo.3.nb.txt\n",
            "  - notices/promo.3.nb.txt\n  - notices/promo.4.en.txt\n")
        try await load()
        #expect(gate.wiring.policy.current.digest != first)
        #expect(gate.wiring.healthChecks.reloads.lastRefusal == nil)
        try await gate.stop()
    }

    @Test func `a gateway that asks for no signature takes a lower version, and remembers it`() async throws {
        try setVersion(4, from: 1)
        try await GatewayFixture(in: folder.root, policies: policies).stop()
        try setVersion(3, from: 4)
        try await GatewayFixture(in: folder.root, policies: policies).stop()
        // A request for signatures from now on starts from what was in force.
        try setVersion(2, from: 3)
        let signing = try signAll()
        let error = await #expect(throws: PolicyDiagnostics.self) {
            _ = try await GatewayFixture(in: folder.root, policies: policies, signing: signing)
        }
        #expect(error?.description.contains("version 3 was in force already") == true)
    }

    @Test func `a bundle that breaks is refused by name when it is activated, and recorded`() async throws {
        let gate = try await GatewayFixture(in: folder.root, policies: policies)
        let first = gate.wiring.policy.current.digest
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        let reply = try await gate.ask("POST", "/v1/policy/activate", ["digest": .string(first.text)])
        #expect(reply.status == 422)
        #expect(reply.object["detail"]?.stringValue?.contains("critical.yaml:") == true)
        #expect(gate.wiring.policy.current.digest == first)
        let ready = try await gate.ask("GET", "/readyz")
        let check = ready.object["checks"]?.arrayValue?.first { $0["name"]?.stringValue == "policy" }
        #expect(check?["detail"]?.stringValue?.contains("critical.yaml:") == true)
        try await gate.stop()
        let trail = try CopiedTrail(at: folder.path("gate/trail"))
        let entry = try CanonicalJSON.read(try #require(try trail.reader.entry(1)))
        #expect(entry["kind"]?.stringValue == "policy_refused")
        #expect(entry["caller"]?.stringValue == "dev")
    }
}
