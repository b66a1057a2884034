package import GateVocabulary

/// What a person's ledger comes to: in each scope where something was said, the consent or the withdrawal that counts.
///
/// The records of the ledger are added in the order of their arrival, and this is all that has to be kept to add
/// the next: a withdrawal that counted when it was received keeps out every grant that is reported after it and was given
/// up to ``Consent/withdrawnUntil``.
package struct ConsentsInForce: Hashable, Sendable {
    /// What one consent reaches.
    package struct Scope: Record, StoredValue {
        package var purpose: Purpose
        package var channel: Channel
        /// `nil` for push, and for a withdrawal of every address of a channel, later ones included.
        package var address: Tag?

        package init(purpose: Purpose, channel: Channel, address: Tag?) {
            (self.purpose, self.channel, self.address) = (purpose, channel, address)
        }

        package static let blank = Self(purpose: Purpose(""), channel: .push, address: nil)
        package static let fields = Fields<Self> { fields in
            fields.kept("purpose", \.purpose, "What for.")
            fields.kept("channel", \.channel, "Which channel.")
            fields.kept("address", \.address, "Which number or mailbox; absent for the whole channel.")
        }

        fileprivate var ofWholeChannel: Scope { Scope(purpose: purpose, channel: channel, address: nil) }
    }

    /// What counts in one scope: a consent, a refusal or a withdrawal.
    package struct Consent: Record, StoredValue {
        /// `given`, `refused` or `withdrawn`.
        package var state: ConsentRecord.State
        package var method: ConsentMethod
        package var expiresAt: Instant?
        /// From when it counts; see ``ConsentLedger/moment(of:in:)``.
        package var moment: Instant
        /// Position in the ledger, from 1.
        package var position: Int64
        /// What was given up to then does not count, should it be reported now.
        package var withdrawnUntil: Instant?

        package init(
            state: ConsentRecord.State, method: ConsentMethod, expiresAt: Instant?, moment: Instant,
            position: Int64, withdrawnUntil: Instant?
        ) {
            (self.state, self.method, self.expiresAt, self.moment) = (state, method, expiresAt, moment)
            (self.position, self.withdrawnUntil) = (position, withdrawnUntil)
        }

        package static let blank = Self(
            state: .shown, method: .inAppToggle, expiresAt: nil, moment: .unstated, position: 0,
            withdrawnUntil: nil)
        package static let fields = Fields<Self> { fields in
            fields.kept("state", \.state, "Whether it was given, refused or withdrawn.")
            fields.kept("method", \.method, "How.")
            fields.kept("expires_at", \.expiresAt, "When it stops counting.")
            fields.kept("moment", \.moment, "From when it counts.")
            fields.kept("position", \.position, "The position of its record in the ledger.")
            fields.kept("withdrawn_until", \.withdrawnUntil, "Grants up to then do not count.")
        }

        /// - Parameter end: Until when grants are ended by it, should it be a withdrawal.
        fileprivate mutating func add(_ consent: Consent, end: Instant) {
            if consent.state == .given, let withdrawnUntil, consent.moment <= withdrawnUntil { return }
            guard (moment, weight) < (consent.moment, consent.weight) else {
                // Said once more, a no holds for as long as it is said.
                if state != .given { extend(by: consent, until: end) }
                return
            }
            let earlierEnd = withdrawnUntil
            self = consent
            withdrawnUntil = earlierEnd
            extend(by: consent, until: end)
        }

        fileprivate mutating func extend(by consent: Consent, until end: Instant) {
            guard consent.state == .withdrawn else { return }
            withdrawnUntil = max(withdrawnUntil ?? end, end)
        }

        /// At equal times the stronger "no" counts.
        private var weight: Int {
            switch state {
            case .shown, .undone, .given: 0
            case .refused: 1
            case .withdrawn: 2
            }
        }
    }

    package private(set) var byScope: [Scope: Consent]

    package init(_ byScope: [Scope: Consent] = [:]) { self.byScope = byScope }

    /// The consents to a purpose that count on a channel, one for each address: what a withdrawal of the purpose ends. In the
    /// order of the ledger.
    package func given(_ purpose: Purpose, on channel: Channel) -> [Consent] {
        byScope.filter { $0.key.purpose == purpose && $0.key.channel == channel && $0.value.state == .given }
            .map(\.value).sorted { $0.position < $1.position }
    }

    /// Whether a consent to a purpose was given for an address, or for any of a channel where none is named.
    package func isGiven(_ purpose: Purpose, on channel: Channel, at address: Tag?) -> Bool {
        byScope.contains { scope, consent in
            scope.purpose == purpose && scope.channel == channel && consent.state == .given
                && (address == nil || scope.address == address)
        }
    }

    /// The consents that reach one device, number or mailbox: a consent to the whole channel is one to each, and one that has run
    /// out is still given.
    package func given(on channel: Channel, at place: Tag) -> [Consent] {
        byScope.filter { scope, consent in
            scope.channel == channel && (scope.address == nil || scope.address == place)
                && consent.state == .given
        }.map(\.value)
    }

    /// Takes the next record of the ledger.
    ///
    /// - Parameters:
    ///   - position: Its place there.
    ///   - moment: From when it counts.
    package mutating func add(_ record: ConsentRecord, at position: Int64, moment: Instant) {
        // A notice that was only shown says nothing of a consent, and a record that takes another back is counted by the ledger.
        guard record.state != .shown, record.state != .undone else { return }
        let scope = Scope(purpose: record.purpose, channel: record.channel, address: record.address)
        var reached = [scope]
        if record.channel != .push, record.address == nil {
            reached += byScope.keys.filter { $0.ofWholeChannel == scope && $0 != scope }
        }
        let said = Consent(
            state: record.state, method: record.method, expiresAt: record.expiresAt, moment: moment,
            position: position, withdrawnUntil: nil)
        let end = Self.end(of: record, moment: moment)
        for scope in reached {
            if var consent = byScope[scope] ?? byScope[scope.ofWholeChannel] {
                consent.add(said, end: end)
                byScope[scope] = consent
            } else {
                var consent = said
                consent.extend(by: said, until: end)
                byScope[scope] = consent
            }
        }
    }

    /// Until when a withdrawal that counts ends grants: until it was received, because the clocks of two reporters do not show
    /// which of two records of one day came first, and a time before the consent that it names is wrong. A withdrawal of
    /// long ago ends only what was given up to its own time.
    private static func end(of record: ConsentRecord, moment: Instant) -> Instant {
        let age = record.receivedAt.milliseconds - record.eventTime.milliseconds
        return moment == record.eventTime && age > ConsentRecord.freshMilliseconds
            ? moment : max(moment, record.receivedAt)
    }

    /// Until when withdrawals that counted end grants at a place; `nil` where none did.
    package func withdrawnUntil(_ purpose: Purpose, on channel: Channel, at address: Tag?) -> Instant? {
        let scope = Scope(purpose: purpose, channel: channel, address: address)
        return (byScope[scope] ?? byScope[scope.ofWholeChannel])?.withdrawnUntil
    }

    /// What counts for one purpose, channel and address.
    ///
    /// - Parameter address: The number's or address's tag for SMS and e-mail; `nil` for push, and for what was said of
    ///   every address of a channel.
    package func fact(purpose: Purpose, channel: Channel, address: Tag?) -> ConsentFact {
        let scope = Scope(purpose: purpose, channel: channel, address: address)
        guard let own = byScope[scope] ?? byScope[scope.ofWholeChannel] else {
            // A consent by purchase is left out: the customer was told of the right to object, and was not asked.
            var isGiven = false
            for (other, consent) in byScope
            where other.purpose == purpose && consent.state == .given && consent.method != .existingCustomer {
                if other.channel == channel { return ConsentFact(state: .otherAddress) }
                isGiven = true
            }
            return ConsentFact(state: isGiven ? .otherChannel : .neverAsked)
        }
        switch own.state {
        case .given: return ConsentFact(state: .given, method: own.method, expiresAt: own.expiresAt)
        case .refused: return ConsentFact(state: .refused)
        case .withdrawn: return ConsentFact(state: .withdrawn)
        case .shown, .undone: return ConsentFact(state: .neverAsked)
        }
    }

    /// Whether a consent to one of some purposes counts at some place and has not run out.
    package func isGiven(_ purposes: [Purpose], at now: Instant) -> Bool {
        guard !purposes.isEmpty else { return false }
        return byScope.contains { scope, consent in
            guard case .given = consent.state, purposes.contains(scope.purpose) else { return false }
            let fact = ConsentFact(state: .given, method: consent.method, expiresAt: consent.expiresAt)
            return !fact.hasExpired(at: now)
        }
    }
}

/// In the order of the ledger, so that equal consents lie alike.
extension ConsentsInForce: RecordValue, StoredValue {
    package func write(row: inout RowWriter) {
        let consents = byScope.sorted { one, other in
            (one.value.position, one.key.channel.rawValue, one.key.address.map(\.hexadecimal) ?? "")
                < (
                    other.value.position, other.key.channel.rawValue,
                    other.key.address.map(\.hexadecimal) ?? ""
                )
        }
        row.put(raw: UInt32(consents.count))
        for (scope, consent) in consents {
            scope.write(row: &row)
            consent.write(row: &row)
        }
    }

    package static func read(row: inout RowReader) throws(DamagedRow) -> Self {
        var byScope: [Scope: Consent] = [:]
        for _ in 0..<(try row.count()) {
            let scope = try Scope.read(row: &row)
            byScope[scope] = try Consent.read(row: &row)
        }
        return Self(byScope)
    }
}
