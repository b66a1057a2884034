package import BundleModel
package import CompliancePolicy
import GateVocabulary

/// The texts that people are shown when they consent, by digest, and what each asks for. Kept from the moment when a
/// bundle with the text comes into force, so that a consent to it can be recorded, and read, long after a later
/// bundle has dropped it. The texts hold no personal data.
extension RecordReading {
    /// - Parameter sha256: 64 lower-case hexadecimal digits.
    package func noticeText(_ sha256: String) throws -> String? { try setting(textSetting(sha256)) }

    /// What a notice asks for with exactly this text: as the bundle says now, or as it said when it was in force.
    package func scope(of notice: Notice.Key, sha256: String, under policy: CompiledPolicy) throws -> Notice
        .Scope?
    {
        policy.notice(notice)?.sha256 == sha256
            ? policy.scope(of: notice) : try archivedScope(of: notice, sha256: sha256)
    }

    /// What a notice asked for that was in force once, with exactly this text.
    package func archivedScope(of notice: Notice.Key, sha256: String) throws -> Notice.Scope? {
        let name = scopeSetting(notice, sha256)
        guard let text = try setting(name) else { return nil }
        let parts = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        // A scope that was archived before notices named their methods and their basis has two parts.
        guard parts.count == 4 || parts.count == 2 else {
            throw StoreError.damaged(table: "setting", row: name, "a notice asks for `\(text)`")
        }
        func names<Name: RawRepresentable<String>>(_ part: Substring) throws -> [Name] {
            try part.split(separator: ",").map { word in
                guard let name = Name(rawValue: String(word)) else {
                    throw StoreError.damaged(table: "setting", row: name, "a notice asks for `\(text)`")
                }
                return name
            }
        }
        return Notice.Scope(
            purposes: parts[0].split(separator: ",").map { Purpose(String($0)) },
            channels: try names(parts[1]),
            methods: parts.count == 4 ? try names(parts[2]) : Notice.ordinaryMethods,
            basis: parts.count == 4 ? String(parts[3]) : "consent")
    }
}

extension RecordReading {
    /// Notices of a bundle that have other words than were in force here under their id, version and language.
    package func editedNotices(of bundle: PolicyBundle) throws -> [PolicyDiagnostic] {
        try bundle.editedNotices { notice in
            try setting(wordsSetting(notice), orDamaged: "it holds no digest of a notice's words") {
                $0.utf8.count == 64 && Hexadecimal.decode($0) != nil ? $0 : nil
            }
        }
    }
}

extension GateMemory {
    /// Archives every notice of a bundle that comes into force, and records which text each has from now on.
    package func archiveNotices(of policy: CompiledPolicy) throws {
        for (name, text) in noticeSettings(of: policy) where try setting(name) == nil {
            setSetting(name, to: text)
        }
    }
}

/// What is kept of the notices of a bundle that comes into force, by the names of the settings. What is kept already stays.
func noticeSettings(of policy: CompiledPolicy) -> [(name: String, text: String)] {
    policy.bundle.notices.values.flatMap { notice -> [(name: String, text: String)] in
        guard let scope = policy.scope(of: notice.key) else { return [] }
        let purposes = scope.purposes.map(\.text).joined(separator: ",")
        let channels = scope.channels.map(\.rawValue).joined(separator: ",")
        let methods = scope.methods.map(\.rawValue).joined(separator: ",")
        return [
            (wordsSetting(notice.key), notice.sha256), (textSetting(notice.sha256), notice.text),
            (scopeSetting(notice.key, notice.sha256), "\(purposes) \(channels) \(methods) \(scope.basis)"),
        ]
    }
}

private func textSetting(_ sha256: String) -> String { "notice \(sha256)" }

/// Where the digest of a notice's words is kept. No digest has 7 digits, so it is no name of a text.
private func wordsSetting(_ notice: Notice.Key) -> String {
    "notice words of \(notice.id) \(notice.version) \(notice.language)"
}

private func scopeSetting(_ notice: Notice.Key, _ sha256: String) -> String {
    "notice \(sha256) as \(notice.id) \(notice.version) \(notice.language)"
}
