import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import GateRecords
package import SendPlanning

/// One send with the decision at each of its destinations; nothing of it is written yet.
///
/// Serves a send that comes in and a request to explain one, so that the two cannot differ.
package final class ConsideredSend: Sendable {
    package let person: RecipientSnapshot?
    let send: SendID
    package let paramsCheck: ParamsCheck
    /// The tags of the event it tells, by channel; for a type that is told once.
    let eventTags: [Channel: Tag]
    /// The entry of the send it stands in for.
    let replaced: UInt64?
    /// At least one: a send without a destination has a decision too.
    package let drafts: [DeliveryDraft]

    init(
        _ request: borrowing SendRequest, as attested: AttestedRequest, under terms: RequestTerms,
        to person: RecipientSnapshot?, paramsCheck: ParamsCheck, inShadow isShadow: Bool,
        in step: StepContext,
        at now: Instant
    ) throws {
        let store = step.memory
        let policy = step.policy
        let type = terms.type
        // Gate 0 comes first, and its reason would show a caller that may not send this type what the recipient was told
        // before and when their quiet hours are.
        let params = paramsCheck.params?.json ?? request.params
        let isAdmitted = terms.rule.admits(params: paramsCheck.fact)
        let send = try step.identifiers.newSendID(at: now)
        let eventTags =
            isAdmitted && terms.rule.flags.contains(.deduplicated)
            ? person?.eventTags(
                type, params, of: attested.caller, on: request.channel, inShadow: isShadow, under: policy)
                ?? [:] : [:]
        let (fallback, replaced) = try store.fallback(
            for: request.fallbackFor, of: attested.caller, to: person?.subject.id, inShadow: isShadow)
        let repetition = try person.map { person in
            try store.repetition(
                of: eventTags, in: attested, to: person.subject.id, by: send,
                replacing: fallback == .replacesOwnSend ? request.fallbackFor : nil)
        }
        let composer = SendComposer(
            step: step, now: now,
            material: Self.material(
                request, saying: params, as: attested, of: type, to: person, send: send, at: now),
            terms: terms, paramsCheck: paramsCheck, fallback: fallback, repetition: repetition ?? .first,
            eventTag: eventTags[request.channel], isShadow: isShadow)
        self.person = person
        self.send = send
        self.paramsCheck = paramsCheck
        self.eventTags = eventTags
        self.replaced = replaced
        guard let person else {
            drafts = [try composer.decide(without: .noneRegistered, for: nil)]
            return
        }
        func decide(for destination: Destination) throws -> DeliveryDraft {
            // A time of day is another moment in the zone of each device.
            let due =
                isAdmitted ? type.map { person.due($0, at: destination, from: now, under: policy) } : nil
            return try composer.decide(for: destination, of: person, due: due)
        }
        drafts =
            switch Self.destinations(of: person, for: request) {
            case .none(let missing): [try composer.decide(without: missing, for: person)]
            case .one(let destination): [try decide(for: destination)]
            case .several(let destinations): try destinations.map(decide)
            }
    }

    /// The content of the send, without its recipient.
    private static func material(
        _ request: SendRequest, saying params: JSONObject, as attested: AttestedRequest,
        of type: NotificationType?, to person: RecipientSnapshot?, send: SendID, at now: Instant
    ) -> SendMaterial {
        let collapse = type.flatMap {
            SendMaterial.collapseText(
                of: request.collapseKey, params, for: $0, by: attested.caller)
        }
        return SendMaterial(
            send: send, request: attested, params: params, deepLink: request.deepLink,
            locale: request.locale,
            collapse: collapse.flatMap { text in person?.subject.tag(.collapseKey, text) }, of: type,
            ttlSeconds: request.ttlSeconds, sentAt: now)
    }

    /// Where a send goes.
    private enum Destinations {
        case none(DestinationFact)
        case one(Destination)
        /// In the order of their own names, which breaks ties in the overall answer.
        case several([Destination])
    }

    private static func destinations(
        of person: RecipientSnapshot, for request: borrowing SendRequest
    ) -> Destinations {
        if let id = request.destination {
            return person.destination(id, on: request.channel).map { .one($0) } ?? .none(.unknown)
        }
        if let only = person.onlyDestination(on: request.channel) { return .one(only) }
        let all = person.destinations(on: request.channel)
        guard all.isEmpty else {
            return .several(all.sorted { $0.id.text.utf8.lexicographicallyPrecedes($1.id.text.utf8) })
        }
        return .none(request.channel == .push && !person.devices.isEmpty ? .inactive : .noneRegistered)
    }
}
