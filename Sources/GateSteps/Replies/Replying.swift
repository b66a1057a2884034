import BundleModel
import CanonicalJSON
import CompliancePolicy
package import GateVocabulary
import OpenSSLCrypto
import GateRecords
package import WireProtocol

/// What a recipient's reply to a text or an e-mail can do: withdraw consent, and nothing else.
extension StepContext {
    /// People of one number or mailbox whose consents end in one step: the bound of a step and of its entry.
    package static var replyHolderCountMax: Int { 100 }
    /// How long one confirmation stands for all that a number says again, in milliseconds.
    static var confirmationIntervalMilliseconds: Int64 { 86_400_000 }

    /// Takes a reply. A reply that begins with a word of the bundle ends the consents of all people who registered the
    /// number or mailbox; any other reply changes nothing. Every reply is recorded.
    ///
    /// The answer says what the reply did: a word that found nothing to end is recorded and not answered as a withdrawal, and only
    /// a withdrawal is confirmed (SG-0025). A time ahead of the gateway's clock counts as now.
    ///
    /// - Returns: `nil` where more people registered the number or mailbox than one step ends the consents of: the reply is
    ///   not answered then, and the same one goes on with the others.
    /// - Throws: ``Problem`` `idConflict` for an id that another reply had.
    package func takeReply(
        _ body: ReplyBody, by caller: CallerName, at now: Instant
    ) throws -> Citing<ReplyAnswer?> {
        let key = RequestKey(caller: caller, idHash: settings.index.replyHash(body.id, of: caller))
        let content = settings.index.contentMAC(CanonicalJSON.write(.object(body.content)))
        if let earlier = try memory.reply(key) {
            guard HMACKey.constantTimeEqual(earlier.contentMAC, content) else {
                throw Problem(
                    .idConflict,
                    detail: "this id was used for a reply of other content; pass on the carrier's own id")
            }
            let trail = try reference(toEntry: earlier.entryIndex)
            let confirmation = earlier.confirmation.flatMap {
                self.confirmation(in: $0.locale, from: min(body.receivedAt, earlier.at))
            }
            return {
                ReplyAnswer(
                    trail: $0[trail], effect: earlier.effect, confirmation: confirmation, isReplayed: true)
            }
        }
        let rule = policy.bundle.channels.smsRevocation
        // Nobody can have registered a sender that is no address, so no consent is taken back there.
        let address = rule?.contains(body.text) == true ? body.sender : nil
        var (holders, waiting, stopped): ([SubjectID], [SubjectID], [SubjectID]) = ([], [], [])
        var hasEnded = false
        if let address {
            let everyText = policy.endsEveryText(on: body.channel, at: now)
            holders = try memory.holders(of: address)
            waiting = try holders.filter { try !isStopped(address, of: $0, everyText: everyText, at: now) }
            if waiting.count > Self.replyHolderCountMax {
                // Holders of whom something ends come last, so that the step which answers is one that ended it.
                let ending = Set(
                    try waiting.filter { try canEnd(at: address, of: $0, everyText: everyText, at: now) })
                waiting = waiting.filter { !ending.contains($0) } + waiting.filter(ending.contains)
            }
            stopped = Array(waiting.prefix(Self.replyHolderCountMax))
            for holder in stopped {
                guard let stop = try stop(address, of: holder, by: caller, at: now) else { continue }
                hasEnded = hasEnded || stop.hasEnded
                try recordDisabling(
                    by: .reply, on: [body.channel], at: stop.place, from: stop.edit.before.person,
                    to: stop.edit.person, at: now)
            }
        }
        if waiting.count > stopped.count {
            alarm(
                "a reply that takes consent back came from a number or mailbox of \(holders.count) people, and counts for \(stopped.count) of them at a time; it is answered when it counts for all. Find out why so many have one address"
            )
            return { _ in nil }
        }
        let effect: ReplyEffect =
            if address == nil {
                body.sender == nil ? .notAnAddress : .notAWithdrawal
            } else if holders.isEmpty {
                .nothingKnownHere
            } else {
                hasEnded ? .withdrawn : .alreadySo
            }
        let receivedAt = min(body.receivedAt, now)
        let confirmation = try address.flatMap { address in
            effect == .withdrawn
                ? try newConfirmation(of: body.text, by: holders, to: address, from: receivedAt, at: now)
                : nil
        }
        let entry = ReplyEntry(
            caller: caller, channel: body.channel, idTag: Hexadecimal.encode(key.idHash), at: receivedAt,
            statedAt: body.receivedAt > now ? body.receivedAt : nil,
            effect: Code(effect == .withdrawn ? "withdrawn" : "none"),
            subjects: holders.count > Self.replyHolderCountMax ? stopped : holders,
            why: effect == .withdrawn ? nil : Code(effect), confirmation: confirmation?.answer.language)
        let trail = try record(entry, at: now)
        observe(.reply(effect, channel: body.channel))
        memory.putReply(
            ReplyRecord(
                key: key, contentMAC: content, entryIndex: trail.index, effect: effect,
                confirmation: confirmation?.record, at: now))
        if let address { try remember(at: address) { $0.repliedAt = now } }
        return { ReplyAnswer(trail: $0[trail], effect: effect, confirmation: confirmation?.answer) }
    }

    /// The text that confirms a withdrawal by text message: one a day for each number, and none once its time is over.
    ///
    /// It is in the language of the word, or one that its readers read as well. Where the word leaves the language open, it is in
    /// that of the holders, as far as they have one in common, else in the bundle's first.
    private func newConfirmation(
        of text: String, by holders: [SubjectID], to address: AddressKey, from receivedAt: Instant,
        at now: Instant
    ) throws -> (answer: ReplyAnswer.Confirmation, record: ReplyConfirmation)? {
        guard address.channel == .sms, let rule = policy.bundle.channels.smsRevocation,
            let locale = try rule.locale(of: text)
                ?? rule.confirmation(toReaderOf: commonLocale(of: holders), under: policy.languages)?.locale,
            let answer = confirmation(in: locale, from: receivedAt), now <= answer.until
        else { return nil }
        let hash = settings.index.addressHash(address)
        if let last = try memory.confirmed(hash),
            now.milliseconds - last.milliseconds < Self.confirmationIntervalMilliseconds
        {
            return nil
        }
        return (answer, ReplyConfirmation(addressHash: hash, locale: locale))
    }

    /// The locale that all holders of a number share; `nil` if one is unknown or two differ.
    private func commonLocale(of holders: [SubjectID]) throws -> String? {
        guard holders.count <= Self.replyHolderCountMax else { return nil }
        let locales = try holders.map { holder in
            try memory.subject(holder).flatMap { try RecipientSnapshot.load($0, from: memory) }?.record.locale
        }
        return Set(locales).count == 1 ? locales[0] : nil
    }

    private func confirmation(in locale: String, from receivedAt: Instant) -> ReplyAnswer.Confirmation? {
        guard let rule = policy.bundle.channels.smsRevocation,
            let found = rule.confirmation(toWordsIn: locale, under: policy.languages)
        else { return nil }
        return ReplyAnswer.Confirmation(
            language: found.locale, text: "\(policy.bundle.brand): \(found.text)",
            until: receivedAt.advanced(bySeconds: Int64(rule.confirmationWithinMinutes) * 60))
    }
}
