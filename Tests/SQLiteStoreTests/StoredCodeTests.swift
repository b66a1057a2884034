import GateSteps
import GateVocabulary
import GatewayPipeline
import GateRecords
import Testing

@testable import SQLiteStore

/// The numbers in the files mean these values for ever; a failing test here is a migration that is missing.
@Suite struct StoredCodeTests {
    @Test func `every stored list is as it was when the first row was written`() {
        #expect(Category.codes.map(\.rawValue) == ["transactional", "security", "social", "marketing"])
        #expect(Tier.codes.map(\.rawValue) == ["critical", "important", "informational", "promotional"])
        #expect(Channel.codes.map(\.rawValue) == ["push", "sms", "email"])
        #expect(Platform.codes.map(\.rawValue) == ["ios", "android"])
        #expect(PushProvider.codes.map(\.rawValue) == ["expo"])
        #expect(BodyForm.codes.map(\.rawValue) == ["sealed", "generic", "full", "never"])
        #expect(Interruption.codes.map(\.rawValue) == ["passive", "active", "time_sensitive", "critical"])
        #expect(AgeFact.codes.map(\.rawValue) == ["adult", "minor"])
        #expect(PrivacyLevel.codes.map(\.rawValue) == ["full", "generic", "hidden"])
        #expect(RegionSource.codes.map(\.rawValue) == ["kyc", "user_declared", "device", "sim", "ip"])
        #expect(OSPermission.codes.map(\.rawValue) == ["granted", "provisional", "denied", "not_determined"])
        #expect(
            ConsentMethod.codes.map(\.rawValue) == [
                "in_app_toggle", "web_form", "double_opt_in", "paper_form", "phone_call", "sms_keyword",
                "email_reply", "existing_customer", "express_consent", "written_consent", "shared_address",
            ])
        #expect(
            PreferenceState.codes.map(\.rawValue) == ["default", "user_on", "user_off", "user_off_step_up"])
        #expect(
            PreferenceSource.codes.map(\.rawValue) == [
                "in_app_settings", "os_settings_sync", "in_app_step_up", "unsubscribe_link", "admin_override",
                "drift_audit", "state_audit", "consent", "reply", "shared_address", "restore",
            ])
        #expect(
            ReplyEffect.codes.map(\.rawValue) == [
                "withdrawn", "not_a_withdrawal", "not_an_address", "nothing_known_here", "already_so",
            ])
        #expect(
            DriftKind.codes.map(\.rawValue) == [
                "subscribed_while_off", "unsubscribed_while_on", "blocked_at_os", "delivered_quietly",
                "permission_outdated", "not_entitled", "zone_missing", "token_stale", "provider_refuses",
            ])
        #expect(DriftAction.codes.map(\.rawValue) == ["repaired", "suppressed", "marked", "resolved"])
        #expect(
            ConsentRecord.State.codes.map(\.rawValue) == ["given", "refused", "withdrawn", "shown", "undone"])
        #expect(PermissionPrompt.Choice.codes.map(\.rawValue) == ["granted", "denied"])
        #expect(
            SendEventKind.codes.map(\.rawValue) == [
                "handed_over", "refused_by_hop", "expired_unsent", "ambiguous", "withdrawn", "summarised",
                "mandatory_unreached", "accepted_by_provider", "failed", "token_gone", "expired",
                "user_observed", "in_doubt",
            ])
        #expect(OutboxRecord.State.codes.map(\.rawValue) == ["ready", "deferred", "digesting"])
        #expect(LedgerKind.consent.rawValue == 0 && LedgerKind.choice.rawValue == 1)
    }

    @Test func `every value has a code and comes back from it`() {
        func check<Value: StoredCode & CaseIterable>(_ type: Value.Type, besides: [Value] = []) {
            #expect(Value.codes.count == Value.allCases.count + besides.count)
            for value in Array(Value.allCases) + besides { #expect(Value(code: value.code) == value) }
            #expect(Value(code: -1) == nil)
            #expect(Value(code: Int64(Value.codes.count)) == nil)
        }
        check(Category.self)
        check(Tier.self)
        check(Channel.self)
        check(Platform.self)
        check(PushProvider.self)
        check(BodyForm.self)
        check(Interruption.self)
        check(AgeFact.self)
        check(PrivacyLevel.self)
        check(RegionSource.self)
        check(OSPermission.self)
        check(ConsentMethod.self, besides: [.sharedAddress])
        check(PreferenceState.self)
        check(
            PreferenceSource.self,
            besides: [.driftAudit, .consent, .reply, .sharedAddress, .restore, .stateAudit])
        check(ReplyEffect.self)
        check(DriftKind.self)
        check(DriftAction.self)
        check(ConsentRecord.State.self)
        check(SendEventKind.self)
        check(OutboxRecord.State.self)
        check(PermissionPrompt.Choice.self)
    }

    @Test func `security outranks everything, and within a lane the tier decides`() {
        let ranks = [Category.security, .transactional].flatMap { category in
            Tier.codes.map { Rank.of(category, $0) }
        }
        #expect(ranks == Array(0...7))
        #expect(Rank.of(.marketing, .critical) == Rank.of(.social, .critical))
        #expect(Array(Rank.all(in: .security)) == [0, 1, 2, 3])
        #expect(Array(Rank.all(in: .general)) == [4, 5, 6, 7])
    }
}
