package import BundleModel
package import CanonicalJSON
import CompliancePolicy
package import GateVocabulary

/// The content of one send before it is composed: params, link, locale and times, kept in the outbox row of a deferred
/// message, which is composed when it is due.
package struct SendMaterial: Hashable, Sendable {
    package var send: SendID
    package var request: AttestedRequest
    package var params: JSONObject
    package var deepLink: String?
    /// The language the send asks for; the recipient's comes after it.
    package var locale: String?
    /// A keyed tag of ``collapseText(of:_:for:by:)``; the text itself never leaves the gateway.
    package var collapse: Tag?
    /// When the send arrived.
    package var sentAt: Instant
    package var expiresAt: Instant
    /// The time to live of a type whose own counts from when it may go out; `nil` where it counts from arrival.
    package var ttlFromDueSeconds: Int64?
}

extension SendMaterial {
    /// A send of a type: the type says when it ends, and from when its time to live counts.
    package init(
        send: SendID, request: AttestedRequest, params: JSONObject = [:], deepLink: String? = nil,
        locale: String? = nil, collapse: Tag? = nil, of type: NotificationType?,
        ttlSeconds asked: Int64? = nil, sentAt now: Instant
    ) {
        let typeSeconds = type?.ttlSeconds ?? NotificationType.ttlSecondsMax
        let seconds = min(asked ?? typeSeconds, typeSeconds)
        self.init(
            send: send, request: request, params: params, deepLink: deepLink, locale: locale,
            collapse: collapse, sentAt: now, expiresAt: now.advanced(bySeconds: seconds),
            ttlFromDueSeconds: type?.ttlCountsFrom == .due ? seconds : nil)
    }

    /// Counts the time to live from a moment at which the send may go out, where the type counts it so.
    package mutating func countLife(from departure: Instant) {
        expiresAt = expiry(countedFrom: departure)
    }

    /// The end of the time to live, should it count from a moment at which the send may go out.
    ///
    /// Never shortens it, and never lets a send live longer than 28 days after its arrival, however often its
    /// recipient moves their quiet hours.
    package func expiry(countedFrom departure: Instant) -> Instant {
        guard let ttlFromDueSeconds else { return expiresAt }
        let last = sentAt.advanced(bySeconds: NotificationType.ttlSecondsMax)
        return max(expiresAt, min(departure.advanced(bySeconds: ttlFromDueSeconds), last))
    }

    /// What two messages share when the newer one replaces the older on the device: the producer's word, the
    /// event of a notice that is told again, or the type where the registry says that it collapses. A word and an event
    /// are of their caller, which can have no other's message replaced.
    package static func collapseText(
        of key: String?, _ params: JSONObject, for type: NotificationType, by caller: CallerName
    ) -> String? {
        // Prefixes, so that no producer's key can collide with a type's name.
        if let key { return "key:\(caller.text)\0\(key)" }
        if !type.isDeduplicated, let param = type.dedupeBy, let event = params[param]?.stringValue {
            return "event:\(type.dedupeNamespace(of: caller))\0\(event)"
        }
        return type.collapses ? "type:" + type.id.text : nil
    }
}

/// The same as canonical JSON: what a held message keeps in the store, encrypted there.
extension SendMaterial {
    package var bytes: [UInt8] {
        var json = CanonicalWriter()
        json.object { json in
            json.member("collapse", hexadecimal: collapse)
            json.member("deep_link", deepLink)
            json.member("expires_at", expiresAt)
            json.member("locale", locale)
            json.member("params") { $0.value(params) }
            json.member("request") { request.write(to: &$0) }
            json.member("send_id", uuid: send)
            json.member("sent_at", sentAt)
            json.member("ttl_from_due_seconds", ttlFromDueSeconds)
        }
        return json.finish()
    }

    package init(json: JSONObject) throws(JSONShapeError) {
        var members = JSONMembers(json, at: .root)
        self.init(
            send: try members.required("send_id", SendID.read(field:at:)),
            request: try members.required("request", AttestedRequest.read(field:at:)),
            params: try members.required("params") { value, pointer throws(JSONShapeError) in
                try JSONMembers(value, at: pointer).object
            },
            deepLink: try members.optional("deep_link", JSONShape.text),
            locale: try members.optional("locale", JSONShape.text),
            collapse: try members.optional("collapse", Tag.read(field:at:)),
            sentAt: try members.required("sent_at", JSONShape.instant),
            expiresAt: try members.required("expires_at", JSONShape.instant),
            ttlFromDueSeconds: try members.optional("ttl_from_due_seconds", JSONShape.integer))
        try members.refuseOthers()
    }
}
