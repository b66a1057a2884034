package import GateVocabulary

/// Numbers that look random and are the same on every machine for the same seed (SplitMix64, Steele,
/// Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
package struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension Facts {
    /// Facts in which anything may be anything, absent included, leaning towards what lets a send through so
    /// that most gates are reached.
    package static func random(using numbers: inout SeededNumbers) -> Facts {
        let now = Instant.utc("2026-03-02T12:00:00Z")
        var facts = Facts.ready(at: now)
        func changes(_ numbers: inout SeededNumbers) -> Bool { numbers.next() % 5 == 0 }
        func any<Value: CaseIterable>(_: Value.Type, _ numbers: inout SeededNumbers) -> Value? {
            let all = Array(Value.allCases)
            let index = Int(numbers.next() % UInt64(all.count + 1))
            return index < all.count ? all[index] : nil
        }
        func instant(_ numbers: inout SeededNumbers) -> Instant {
            now.advanced(bySeconds: Int64(numbers.next() % 7) * 43_200 - 129_600)
        }
        func region(_ numbers: inout SeededNumbers) -> RegionObservation {
            let codes = ["NO", "GB", "JE", "US", "US-CA", "SG", "BR"]
            return RegionObservation(
                code: RegionCode(codes[Int(numbers.next() % UInt64(codes.count))])!,
                source: any(RegionSource.self, &numbers) ?? .kyc,
                observedAt: now.advanced(bySeconds: -Int64(numbers.next() % 400) * 86_400))
        }
        func consent(_ numbers: inout SeededNumbers) -> ConsentFact? {
            guard let state = any(ConsentState.self, &numbers) else { return nil }
            return ConsentFact(
                state: state, method: any(ConsentMethod.self, &numbers),
                expiresAt: numbers.next() % 2 == 0 ? instant(&numbers) : nil)
        }
        func count(_ numbers: inout SeededNumbers) -> Int? {
            numbers.next() % 4 == 0 ? nil : Int(numbers.next() % 7)
        }
        func size(_ numbers: inout SeededNumbers) -> Int? {
            [nil, 100, 459, 460, 4_096, 4_097][Int(numbers.next() % 6)]
        }
        if changes(&numbers) { facts.now = numbers.next() % 8 == 0 ? nil : instant(&numbers) }
        if changes(&numbers) { facts.expiry = numbers.next() % 4 == 0 ? nil : instant(&numbers) }
        if changes(&numbers) { facts.due = numbers.next() % 4 == 0 ? nil : instant(&numbers) }
        if changes(&numbers) { facts.params = any(ParamsFact.self, &numbers) }
        if changes(&numbers) { facts.fallback = any(FallbackFact.self, &numbers) }
        if changes(&numbers) { facts.recipient = any(RecipientFact.self, &numbers) }
        if changes(&numbers) { facts.age = any(AgeFact.self, &numbers) }
        if numbers.next() % 2 == 0 { facts.accountRegion = changes(&numbers) ? nil : region(&numbers) }
        if numbers.next() % 2 == 0 {
            facts.deviceRegions =
                changes(&numbers) ? nil : (0..<(numbers.next() % 3)).map { _ in region(&numbers) }
        }
        if numbers.next() % 2 == 0 { facts.privacy = any(PrivacyLevel.self, &numbers) }
        if numbers.next() % 2 == 0 { facts.consent = consent(&numbers) }
        if changes(&numbers) { facts.purposeConsent = consent(&numbers) }
        if changes(&numbers) { facts.ownRequest = consent(&numbers) }
        if changes(&numbers) { facts.repetition = any(RepetitionFact.self, &numbers) }
        if changes(&numbers) { facts.pushEnabled = [true, false, nil][Int(numbers.next() % 3)] }
        if changes(&numbers) { facts.accountPreference = any(PreferenceState.self, &numbers) }
        if changes(&numbers) { facts.destinationPreference = any(PreferenceState.self, &numbers) }
        if changes(&numbers) { facts.accountTypePreference = any(PreferenceState.self, &numbers) }
        if changes(&numbers) { facts.destinationTypePreference = any(PreferenceState.self, &numbers) }
        if changes(&numbers) {
            facts.quietHours =
                [
                    nil, .off, .zoneMissing, .outside, .inside(endsAt: instant(&numbers)),
                    .insideSomewhere(endsAt: instant(&numbers)),
                ][Int(numbers.next() % 6)]
        }
        if changes(&numbers) { facts.destination = any(DestinationFact.self, &numbers) }
        if changes(&numbers) { facts.platform = any(Platform.self, &numbers) }
        if changes(&numbers) { facts.osPermission = any(OSPermission.self, &numbers) }
        if changes(&numbers) { facts.criticalAlerts = [true, false, nil][Int(numbers.next() % 3)] }
        if changes(&numbers) { facts.deviceKey = any(DeviceKeyFact.self, &numbers) }
        if changes(&numbers) {
            facts.sizes =
                numbers.next() % 6 == 0
                ? nil
                : PayloadSizes(sealed: size(&numbers), generic: size(&numbers), full: size(&numbers))
        }
        if changes(&numbers) { facts.typeCount = count(&numbers) }
        if changes(&numbers) { facts.categoryCount = count(&numbers) }
        if changes(&numbers) { facts.everythingCount = count(&numbers) }
        if changes(&numbers) { facts.withheld = [true, false, nil][Int(numbers.next() % 3)] }
        return facts
    }
}
