package import AuditTrail
import CanonicalJSON
import GateRecords
package import GateVocabulary
package import KeyLifecycle
import OpenSSLCrypto
package import SealedFormat
package import WireProtocol

/// The authorities whose keysets a gateway accepts: the pinned ones, for its own name.
package struct KeysetTrust: Sendable {
    /// Empty where no authority is configured, and no keyset is taken.
    package var authorities: [NoteVerifierKey]
    /// The origin of the trail.
    package var gateway: String

    package init(authorities: [NoteVerifierKey], gateway: String) {
        self.authorities = authorities
        self.gateway = gateway
    }

    /// The keyset in a signed note.
    ///
    /// - Throws: Also for one that has expired at `now`.
    package func keyset(in note: [UInt8], at now: Instant) throws(KeysetError) -> Keyset {
        let signed: SignedNote
        do throws(NoteError) {
            signed = try SignedNote(parsing: note)
            _ = try signed.attestations(by: authorities)
        } catch { throw .notSigned(why: error.message) }
        let keyset = try Keyset(parsing: signed.text)
        guard keyset.gateway.utf8.elementsEqual(gateway.utf8) else {
            throw .otherGateway(keyset.gateway, expected: gateway)
        }
        guard now.milliseconds / 1000 < Int64(keyset.expiresAt) else { throw .expired(at: keyset.expiresAt) }
        return keyset
    }
}

/// The list of genuine keys: what the offline authority signed, and two callers put in force.
extension StepContext {
    /// The result of a keyset that a caller brought.
    package struct KeysetChange {
        package var keyset: Keyset
        /// Until when another caller must bring the same; `nil` when it is in force.
        package var secondCallerBy: Instant?
        /// `nil` when this very note is in force already, and nothing was recorded.
        package var trail: EntryReference?
    }

    /// Accepts a keyset. The first caller proposes it; a second caller that brings the same within the hour puts it
    /// in force.
    ///
    /// Refused unless every key in use is in it: phones and auditors would stop believing this gateway.
    package func adoptKeyset(
        _ note: String, trusting trust: KeysetTrust, by caller: CallerName, at now: Instant
    ) throws -> KeysetChange {
        let keyset = try checkedKeyset(note, trusting: trust, at: now)
        // A caller that lost the answer asks again.
        if try memory.keysetNote() == note { return KeysetChange(keyset: keyset) }
        let digest = Self.digest(of: note)
        let proposal = try memory.keysetProposal()
        let first = proposal.flatMap { $0.content == digest && $0.by.isOpen(at: now) ? $0.by : nil }
        if let first, first.caller == caller {
            throw Problem(
                .wrongState,
                detail:
                    "the same caller brought it before; another must bring it too, by \(first.expiresAt.rfc3339)"
            )
        }
        if first != nil {
            memory.setSetting(KeysetSettings.note, to: note)
            memory.setSetting(KeysetSettings.proposal, to: nil)
        } else {
            let next = StoredProposal(content: digest, by: .init(caller: caller, at: now))
            memory.setSetting(KeysetSettings.proposal, to: next.text(contentKey: KeysetSettings.contentKey))
        }
        let trail = try record(
            KeysetEntry(
                caller: caller, digest: digest,
                event: first == nil ? KeysetEntry.proposed : KeysetEntry.adopted,
                expiresAt: Instant(milliseconds: Int64(keyset.expiresAt) * 1000),
                version: Int(keyset.version), proposedBy: first?.caller), at: now)
        let until = first == nil ? GatewayKey.Proposal(caller: caller, at: now).expiresAt : nil
        return KeysetChange(keyset: keyset, secondCallerBy: until, trail: trail)
    }

    /// SHA-256 of a signed note, hexadecimal.
    package static func digest(of note: String) -> String {
        Hexadecimal.encode(SHA256.digest(Array(note.utf8)).bytes)
    }

    private func checkedKeyset(
        _ note: String, trusting trust: KeysetTrust, at now: Instant
    ) throws -> Keyset {
        guard !trust.authorities.isEmpty else {
            throw Problem(
                .wrongState,
                detail:
                    "no authority is pinned here; set `authority` in the configuration to its verifier key")
        }
        do {
            let keyset = try trust.keyset(in: Array(note.utf8), at: now)
            if let known = try memory.keyset(), let refusal = keyset.refusal(toFollow: known) {
                throw refusal
            }
            if let key = keyset.unlisted(of: try memory.keyring() ?? Keyring()) {
                throw Problem(
                    .wrongState,
                    detail:
                        "the keyset does not have `\(key.id)`, which is in use, as genuine; have the authority sign one that does"
                )
            }
            return keyset
        } catch let error as KeysetError {
            throw Problem(.wrongState, detail: error.description)
        }
    }
}

private enum KeysetSettings {
    static let note = "keyset"
    static let proposal = "keyset_proposal"
    /// Under what name a proposal has the SHA-256 of the signed note, hexadecimal.
    static let contentKey = "digest"
}

extension GateMemory {
    /// Puts a keyset back in force that the authority signed, after a restore.
    package func restoreKeyset(_ note: String) throws { setSetting(KeysetSettings.note, to: note) }
}

extension RecordReading {
    /// The signed note of the keyset in force; `nil` before the first.
    package func keysetNote() throws -> String? { try setting(KeysetSettings.note) }

    /// The keyset in force. Its signature was verified when it was taken.
    package func keyset() throws -> Keyset? {
        try setting(KeysetSettings.note, orDamaged: "it holds no keyset") {
            try? Keyset(parsing: SignedNote(parsing: Array($0.utf8)).text)
        }
    }

    /// Why a key may not come into use: phones and auditors would not believe what it signs; `nil` when it may.
    package func refusal(toUse key: GatewayKey) throws -> Problem? {
        guard key.state == .active, let keyset = try keyset(), !keyset.vouches(for: key) else { return nil }
        return Problem(
            .wrongState,
            detail:
                "`\(key.id)` is not in the keyset in force (version \(keyset.version)), so phones and auditors would not believe it; have the authority sign a keyset with it first"
        )
    }

    fileprivate func keysetProposal() throws -> StoredProposal? {
        try setting(KeysetSettings.proposal, orDamaged: "it holds no proposal") {
            StoredProposal(text: $0, contentKey: KeysetSettings.contentKey)
        }
    }
}
