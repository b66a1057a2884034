import GateVocabulary

// The kinds of entry there are. A kind is declared and listed here, or beside its entry, or it does not exist.

extension EntryKind {
    /// One send, all its destinations inside.
    package static let send = EntryKind("send")
    /// A message that waits was looked at again.
    package static let redecision = EntryKind("redecision")
    package static let recipient = EntryKind("recipient")
    package static let device = EntryKind("device")
    package static let address = EntryKind("address")
    package static let permissionPrompt = EntryKind("permission_prompt")
    package static let deviceKey = EntryKind("device_key")
    package static let consent = EntryKind("consent")
    package static let preference = EntryKind("preference")
    package static let subscription = EntryKind("subscription")
    package static let drift = EntryKind("drift")
    package static let erasure = EntryKind("erasure")
    /// All that an import changed of one person; it stands for entries of other kinds (``TrailEntry/parts()``).
    package static let imported = EntryKind("import")
    package static let restore = EntryKind("restore")
}

extension EntrySchema {
    /// What the entries of each kind are read as.
    package static let bodies: [any EntryBody.Type] =
        ([SendEntry.self, RedecisionEntry.self, RestoreEntry.self] + people + messages + operating)
        .sorted { $0.kind < $1.kind }

    private static let people: [any EntryBody.Type] = [
        RecipientEntry.self, DeviceEntry.self, AddressEntry.self, PermissionPromptEntry.self,
        DeviceKeyEntry.self, ConsentEntry.self, PreferenceEntry.self, SubscriptionEntry.self,
        DriftEntry.self, ErasureEntry.self, ImportEntry.self,
    ]

    /// The closed table of the trail's format, version 1 (handbook, "Audit format").
    ///
    /// Texts and params are in none of them. A person is a pseudonym (16 bytes), whatever a caller or a
    /// recipient chose is a keyed tag (16 bytes).
    package static let version1 = EntrySchema(of: bodies)
}
