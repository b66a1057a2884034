import GateVocabulary

/// Every single-valued setting, by the name it has in the file. Lists (`listeners`, `callers`) stand in the file
/// only.
///
/// `limits.outbox_bytes` in the file is `SENDGATE_LIMITS_OUTBOX_BYTES` in the environment.
enum Setting: String, CaseIterable, Sendable {
    case state
    case trail
    case trailKeepDays = "trail_keep_days"
    case policies
    case keys
    case rootKey = "root_key"
    case origin
    case externalCheckpoint = "external_checkpoint"
    case unsubscribeURL = "unsubscribe_url"
    case publicListen = "public_listen"
    case preferencesURL = "preferences_url"
    case logLevel = "log_level"
    case logFormat = "log_format"
    case eventLoops = "event_loops"
    case sealers
    case hopUnix = "hop.unix"
    case hopFile = "hop.file"
    case hopUsers = "hop.users"
    case hopProtocol = "hop.protocol"
    case hopRequests = "hop.requests"
    case policySigningCompliance = "policy_signing.compliance"
    case policySigningSecurity = "policy_signing.security"
    case policySigningLegal = "policy_signing.legal"
    case authority
    case queuedOperations = "limits.queued_operations"
    case queuedOperationsPerCaller = "limits.queued_operations_per_caller"
    case outboxMessages = "limits.outbox_messages"
    case outboxMessagesPerCaller = "limits.outbox_messages_per_caller"
    case outboxBytes = "limits.outbox_bytes"
    case freeDiskBytes = "limits.free_disk_bytes"
    case securitySharePercent = "limits.security_share_percent"
    case listenBacklog = "limits.listen_backlog"
    case connections = "limits.connections"
    case connectionsPerUser = "limits.connections_per_user"
    case requestsInFlight = "limits.requests_in_flight"
    case requestsInFlightPerUser = "limits.requests_in_flight_per_user"
    case drainSeconds = "limits.drain_seconds"
    case retentionDays = "limits.retention_days"
    case driftEveryDays = "drift.every_days"
    case driftPersonsPerSecond = "drift.persons_per_second"
    case driftStaleDays = "drift.stale_days"
    case driftCriticalAlertApps = "drift.critical_alert_apps"

    static let environmentPrefix = "SENDGATE_"

    /// The mapping that it stands in; `nil` for one at the top.
    var group: String? { rawValue.firstIndex(of: ".").map { String(rawValue[..<$0]) } }

    /// The name in its mapping.
    var name: String { group.map { String(rawValue.dropFirst($0.count + 1)) } ?? rawValue }

    var environmentName: String {
        Self.environmentPrefix + rawValue.replacing(".", with: "_").uppercased()
    }

    /// What a number may be; `nil` for a text.
    var range: ClosedRange<Int>? {
        switch self {
        case .eventLoops, .sealers: 1...64
        case .queuedOperations, .queuedOperationsPerCaller: 16...1_000_000
        case .outboxMessages, .outboxMessagesPerCaller: 16...100_000_000
        case .outboxBytes: 1 << 20...1 << 40
        case .freeDiskBytes: 1 << 20...1 << 40
        // A tenth is the least of every bound that a flood of marketing must not take from security.
        case .securitySharePercent: 10...90
        case .connections, .connectionsPerUser, .requestsInFlight, .requestsInFlightPerUser: 8...1_000_000
        // The kernel caps it at `net.core.somaxconn`.
        case .listenBacklog: 1...65_535
        case .drainSeconds: 1...600
        case .hopProtocol: 1...2
        case .hopRequests: 8...4_096
        case .retentionDays: Int(Retention.daysMin)...3_660
        case .trailKeepDays:
            TrailPruning.Terms.keepDaysMin(retentionDays: Int(Retention.daysMin))...36_600
        // 0 never begins an audit by itself.
        case .driftEveryDays: 0...90
        case .driftPersonsPerSecond: 1...10_000
        case .driftStaleDays: 7...3_660
        case .state, .trail, .policies, .keys, .rootKey, .origin, .externalCheckpoint, .unsubscribeURL,
            .publicListen,
            .preferencesURL, .logLevel, .logFormat, .hopUnix, .hopFile,
            .hopUsers, .policySigningCompliance, .policySigningSecurity, .policySigningLegal, .authority,
            .driftCriticalAlertApps:
            nil
        }
    }

    /// Whether the value is several texts: a list in the file, separated by commas elsewhere.
    var isList: Bool {
        switch self {
        case .hopUsers, .policySigningCompliance, .policySigningSecurity, .policySigningLegal, .authority,
            .driftCriticalAlertApps:
            true
        default: false
        }
    }

    /// Bytes of one text: the longest path Linux takes (`PATH_MAX`).
    static let textByteCountMax = 4096
}
