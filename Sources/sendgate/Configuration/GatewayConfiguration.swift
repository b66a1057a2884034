import AuditTrail
import BundleModel
import CommandTerminal
import CompliancePolicy
import DeliveryRelay
import GateSteps
import GateVocabulary
import GatewayPipeline
import Logging
import PublicPages
import UnixSocketEndpoint
import UnixSockets

/// Everything an operator decides about one gateway. What the law decides is in `Policies/`.
struct GatewayConfiguration: Hashable, Sendable {
    /// Databases and lock; one gateway owns it.
    var stateDirectory: String
    var trailDirectory: String
    var policiesDirectory: String
    var keysDirectory: String
    /// A root key kept elsewhere, e.g. a systemd credential.
    var rootKeyPath: String?
    /// First line of every checkpoint, and the name of its verifier key (C2SP signed-note: no space, no plus).
    var trailOrigin: String
    /// A checkpoint of the trail that was copied to where the operator of this machine cannot set it back.
    var externalCheckpointPath: String?
    /// How long entries are kept; `nil` keeps all of them.
    var pruning: TrailPruning.Terms?
    var listeners: [Listener]
    var callers: [CallerBinding]
    /// Where each caller is named first, for messages.
    var callerPlaces: [CallerName: String] = [:]
    var hop: NextHop
    /// Which version of the contract the delivery layer speaks.
    var hopProtocol = HopProtocol.outcomes
    var hopConcurrency = DeliveryRelay.Concurrency()
    /// Where a one-tap unsubscribe lands; the link's token is appended.
    var unsubscribeURL: String
    /// Where the pages behind it are served; `nil` serves none.
    var publicListen: PageAddress?
    /// Where a recipient changes all their notifications; the pages link there.
    var preferencesURL: String?
    /// The keys whose signatures a bundle needs to come into force. The setting stands here and not in the
    /// bundle, because a bundle must not be able to excuse itself. `nil` with `serve --dev` only.
    var policySigning: PolicySigning?
    /// The offline keys whose lists of genuine keys are taken; empty takes none.
    var authorities: [NoteVerifierKey] = []
    var logLevel = Logger.Level.info
    var logFormat = LogFormat.logfmt
    /// Set by `serve --dev` only: throwaway keys and root as a caller are accepted, and this caller, which the
    /// bundle does not know, may do everything.
    var developmentCaller: CallerName?
    var limits = EngineLimits()
    var drift = DriftSettings()
    var driftSchedule = DriftSchedule()
    var endpoint = EndpointLimits()
    /// Threads that seal.
    var sealerCount: Int

    var isDevelopment: Bool { developmentCaller != nil }

    /// The public keys whose signatures are taken, in an order of their own.
    var pinnedKeys: [PinnedKey] {
        let roles = ApprovalRole.allCases.flatMap { role in
            (policySigning?.keys[role] ?? []).map { PinnedKey($0.text, of: role) }
        }
        return roles + authorities.map { PinnedKey($0.text, of: nil) }
    }

    /// What a gateway starts with and should not stay as it is, for the log of the start.
    var warnings: [String] { listeners.compactMap(\.shadowNotice) + pageWarnings }

    private var pageWarnings: [String] {
        if publicListen == nil {
            return [
                "`public_listen` is not set: this gateway answers none of the unsubscribe links that its messages carry"
            ]
        }
        if preferencesURL == nil {
            return [
                "`public_listen` is set and `preferences_url` is not: a page behind an unsubscribe link leads to no other setting"
            ]
        }
        return []
    }

    struct Listener: Hashable, Sendable {
        enum Source: Hashable, Sendable {
            case path(String)
            /// `FileDescriptorName=` of a socket unit; systemd made the socket, its mode and its owner.
            case systemd(name: String)
        }

        var source: Source
        /// `nil`, in development, for a directory that was looked at already.
        var directoryMode: UInt32? = 0o750
        var mode: UInt32 = 0o660
        /// What becomes of sends.
        var sends = ListenerMode.enforce
        /// Where the listener, and what it enforces, stand in the file, for messages.
        var place: String?
        var enforcedPlaces: [String: String] = [:]
        var ownerID: UInt32?
        var groupID: UInt32?
        /// Bound to one caller: containers often share a uid.
        var caller: CallerName?
        /// Uids that may connect to a bound listener.
        var userIDs: Set<UInt32> = []

        /// As messages name it.
        var name: String {
            switch source {
            case .path(let path): path
            case .systemd(let name): "systemd: \(name)"
            }
        }

        /// Whether two sockets lie in one directory and want something different of it.
        func disagrees(with other: Listener) -> Bool {
            guard case .path(let path) = source, case .path(let otherPath) = other.source,
                SocketFile(path: path).directory == SocketFile(path: otherPath).directory
            else { return false }
            return (directoryMode, ownerID, groupID)
                != (other.directoryMode, other.ownerID, other.groupID)
        }
    }

    /// Whether nothing that a caller sends can go out: every listener is in shadow and enforces nothing, or takes no sends.
    var isShadow: Bool {
        listeners.contains(where: \.sends.isShadow) && !listeners.contains(where: \.sends.forwards)
    }

    struct PolicySigning: Hashable, Sendable {
        /// Of each role at least one; a signature by any of a role's keys is enough for the role.
        var keys: [ApprovalRole: [NoteVerifierKey]]
    }

    /// Two while one takes the place of the other, and as many again for a lost one.
    static let authorityCountMax = 4

    struct CallerBinding: Hashable, Sendable {
        var caller: CallerName
        var userIDs: Set<UInt32> = []
        var groupIDs: Set<UInt32> = []
    }

    enum NextHop: Hashable, Sendable {
        /// `POST /v1/deliveries` on the delivery layer's socket, whose uid must be one of these; `nil` accepts
        /// any, with `--dev` only.
        case unix(path: String, serverUserIDs: Set<UInt32>?)
        /// NDJSON: with `--dev`, and where no listener hands a send over.
        case file(path: String)
    }
}

extension GatewayConfiguration.Listener {
    /// What a start says of a listener over which less goes out than is sent.
    fileprivate var shadowNotice: String? {
        guard case .shadow(let enforced) = sends else { return nil }
        let notice =
            "`\(name)` is in shadow: what is sent over it is decided and recorded, and does not go out"
        guard !enforced.isEmpty else { return notice }
        let names = enforced.types.map(\.text).sorted() + enforced.callers.map(\.text).sorted()
        return "\(notice), but for \(names.map { "`\($0)`" }.joined(separator: ", "))"
    }
}
