import GateVocabulary

/// The kinds of entry there are. A kind is added here and to the table below, or it does not exist.
extension EntryKind {
    /// One send, all its destinations inside.
    package static let send = EntryKind("send")
    /// A message that waits was looked at again.
    package static let redecision = EntryKind("redecision")
    package static let unsent = EntryKind("unsent")
    package static let delivery = EntryKind("delivery")
    package static let cancel = EntryKind("cancel")
    package static let acknowledgement = EntryKind("acknowledgement")
    package static let mandatoryUnreached = EntryKind("mandatory_unreached")
    package static let receipt = EntryKind("receipt")
    package static let reply = EntryKind("reply")
    package static let recipient = EntryKind("recipient")
    package static let device = EntryKind("device")
    package static let address = EntryKind("address")
    package static let permissionPrompt = EntryKind("permission_prompt")
    package static let deviceKey = EntryKind("device_key")
    package static let gatewayKey = EntryKind("gateway_key")
    package static let keyset = EntryKind("keyset")
    package static let consent = EntryKind("consent")
    package static let preference = EntryKind("preference")
    package static let subscription = EntryKind("subscription")
    package static let drift = EntryKind("drift")
    package static let erasure = EntryKind("erasure")
    /// All that an import changed of one person; it stands for entries of other kinds (``TrailEntry/parts()``).
    package static let imported = EntryKind("import")
    package static let switchOff = EntryKind("switch_off")
    package static let review = EntryKind("review")
    package static let policy = EntryKind("policy")
    package static let policyRefused = EntryKind("policy_refused")
    package static let unknownPeer = EntryKind("unknown_peer")
    package static let explain = EntryKind("explain")
    package static let clock = EntryKind("clock")
    package static let restore = EntryKind("restore")
    package static let start = EntryKind("start")
    package static let stop = EntryKind("stop")
}

extension EntrySchema {
    /// What the entries of each kind are read as.
    package static let bodies: [any EntryBody.Type] = [
        AcknowledgementEntry.self, AddressEntry.self, CancelEntry.self, ClockEntry.self,
        ConsentEntry.self, DeliveryEntry.self, DeviceEntry.self, DeviceKeyEntry.self, DriftEntry.self,
        ErasureEntry.self, ExplainEntry.self, GatewayKeyEntry.self, ImportEntry.self, KeysetEntry.self,
        MandatoryUnreachedEntry.self, PermissionPromptEntry.self, PolicyEntry.self,
        PolicyRefusedEntry.self, PreferenceEntry.self, ReceiptEntry.self, RecipientEntry.self,
        RedecisionEntry.self, ReplyEntry.self, RestoreEntry.self, ReviewEntry.self, SendEntry.self,
        StartEntry.self, StopEntry.self, SubscriptionEntry.self, SwitchOffEntry.self,
        UnknownPeerEntry.self, UnsentEntry.self,
    ]

    /// The closed table of the trail's format, version 1 (handbook, "Audit format").
    ///
    /// Texts and params are in none of them. A person is a pseudonym (16 bytes), whatever a caller or a
    /// recipient chose is a keyed tag (16 bytes).
    package static let version1 = EntrySchema(of: bodies)
}
