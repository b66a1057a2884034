import SealedFormat
import BundleModel
import CompliancePolicy
import DeliveryRelay
import GateSteps
import GateVocabulary
import GatewayPipeline
import KeyLifecycle
import OpenSSLCrypto
import UnixSocketEndpoint
import WireProtocol

extension PolicyBundle {
    /// What is said of a bundle in force that no role approved.
    var unsignedRemark: String {
        isStarter
            ? "the bundle is the unsigned starter: an example that nobody has approved"
            : "the bundle is unsigned: nobody has approved it"
    }
}

/// What readiness and metrics say of the parts around the engine.
struct HealthChecks: Sendable {
    let store: any GateStore
    let publisher: TrailPublisher
    let policy: PolicyInForce
    let clock: any Clock
    let health: RelayHealth
    let reloads: ReloadLedger
    let keys: GateKeys
    var limits: EngineLimits
    let stateDirectory: String
    let endpoint: @Sendable () -> EndpointMetrics?

    /// Lag of the published trail at which the gateway calls itself unready, in milliseconds.
    /// Sends are refused later, at ``EngineLimits/publishLagMillisecondsMax``.
    static let unreadyLagMilliseconds: Int64 = 5_000

    /// Whether a send would be taken now. What is only worth knowing passes, and says so in its detail.
    func checks() -> [ReadinessAnswer.Check] {
        [storeCheck, diskCheck, trailCheck, outboxCheck, policyCheck, keysCheck]
    }

    private var keysCheck: ReadinessAnswer.Check {
        var details: [String] = []
        let use = store.dataKeyUse
        if use.isExhausted {
            details.append(
                "data key `\(use.key)` has sealed 2^32 rows and seals no more; add a new one (Running a gateway, Rotating a key)"
            )
        } else if use.mustRotate {
            details.append(
                "data key `\(use.key)` has sealed \(use.sealCount) rows; add a new one before 2^32 (Running a gateway, Rotating a key)"
            )
        }
        let keyring = keys.keyring
        let hasOrigin = keyring.active(.origin) != nil
        if !hasOrigin { details.append(NoOriginKey().description) }
        let waiting = keyring.keys.filter { $0.state == .preActivation }
        if let key = waiting.first {
            details.append("key `\(key.id)` waits to be promoted")
        }
        if !SecretMemory.protection.isLocked {
            details.append(
                "keys are not locked in memory; raise the limit (`LimitMEMLOCK=` in systemd, `ulimit -l`)")
        }
        return .init(
            name: "keys", isPassed: !use.isExhausted && hasOrigin,
            detail: details.isEmpty ? nil : details.joined(separator: "; "))
    }

    /// How many damaged rows a check names; the log has all of them.
    private static let damagedRowCountShown = 5

    private func damageDetail() -> String? {
        let damaged = store.damagedRows
        guard !damaged.isEmpty else { return nil }
        let shown = damaged.prefix(Self.damagedRowCountShown).map(\.description).joined(separator: "; ")
        let more = damaged.count - Self.damagedRowCountShown
        return
            "\(shown)\(more > 0 ? "; and \(more) more" : ""); what needs them is refused, everything else goes on"
    }

    private var storeCheck: ReadinessAnswer.Check {
        do {
            _ = try store.read { try $0.entryCount() }
            return .init(name: "store", isPassed: true, detail: damageDetail())
        } catch {
            return .init(name: "store", isPassed: false, detail: "\(error)")
        }
    }

    private var diskCheck: ReadinessAnswer.Check {
        do {
            let free = try DiskSpace.freeByteCount(at: stateDirectory)
            let isEnough = free >= limits.freeDiskByteCountMin
            return .init(
                name: "disk", isPassed: isEnough,
                detail: isEnough
                    ? nil
                    : "\(free) bytes are free and \(limits.freeDiskByteCountMin) are needed; make room in `\(stateDirectory)`"
            )
        } catch {
            return .init(name: "disk", isPassed: false, detail: "\(error)")
        }
    }

    private var trailCheck: ReadinessAnswer.Check {
        let lag = publisher.lagMilliseconds()
        let isPassed = lag <= Self.unreadyLagMilliseconds
        var detail = isPassed ? nil : "the published trail is \(lag) ms behind"
        if let failure = publisher.failure { detail = "\(detail ?? "publishing failed"): \(failure)" }
        return .init(name: "trail", isPassed: isPassed, detail: detail)
    }

    private var outboxCheck: ReadinessAnswer.Check {
        guard let depth = try? store.read({ try $0.outboxDepth() }) else {
            return .init(name: "outbox", isPassed: false, detail: "cannot be read")
        }
        // The last share is open to security only, so for any other send it is full before.
        let isFull =
            depth.rowCount >= limits.part(of: limits.outboxRowCountMax, isSecurity: false)
            || depth.byteCount >= limits.part(of: limits.outboxByteCountMax, isSecurity: false)
        var detail: String?
        if isFull { detail = "\(depth.rowCount) messages wait, and no more are taken" }
        if let obstacle = health.obstacle {
            detail =
                (detail ?? "\(depth.rowCount) messages wait") + "; the next hop cannot be used: \(obstacle)"
        }
        return .init(name: "outbox", isPassed: !isFull, detail: detail)
    }

    /// Passes whatever it says: a bundle that nobody approved, or a review that is due, stops no send by itself.
    private var policyCheck: ReadinessAnswer.Check {
        var details: [String] = []
        if let refusal = reloads.lastRefusal {
            details.append(
                "a bundle was refused at \(refusal.at.rfc3339) and the old one stays: \(refusal.reason)")
        }
        let policy = policy.current
        if policy.approvals.isEmpty { details.append(policy.bundle.unsignedRemark) }
        let lapsed = policy.bundle.lapsedReviews(at: clock.now())
        if let first = lapsed.first {
            details.append("\(lapsed.count) reviews are due, the first: \(first.placed)")
        }
        return .init(
            name: "policy", isPassed: true, detail: details.isEmpty ? nil : details.joined(separator: "; "))
    }

    /// More lines for `/metrics`, in the Prometheus text format.
    func metrics() -> String {
        var text = ""
        func add(_ name: String, _ kind: String, _ help: String, _ value: some BinaryInteger) {
            text +=
                "# HELP sendgate_\(name) \(help)\n# TYPE sendgate_\(name) \(kind)\nsendgate_\(name) \(value)\n"
        }
        add(
            "trail_published_entries", "gauge", "Entries under the newest checkpoint.",
            publisher.publishedSize)
        add("hop_reachable", "gauge", "Whether the next hop answers.", health.isHopReachable ? 1 : 0)
        add(
            "policy_refused", "gauge", "Whether the last reload was refused.",
            reloads.lastRefusal == nil ? 0 : 1)
        text += "# HELP sendgate_policy_info The bundle in force.\n# TYPE sendgate_policy_info gauge\n"
        let policy = policy.current
        let bundle = policy.bundle
        let roles = Set(policy.approvals.map(\.role.rawValue)).sorted().joined(separator: ",")
        text +=
            "sendgate_policy_info{digest=\"\(bundle.digest)\",reviewed=\"\(bundle.reviewedDigest)\",approved=\"\(roles)\"} 1\n"
        add(
            "policy_reviews_lapsed", "gauge", "Mandatory types whose review is due.",
            bundle.lapsedReviews(at: clock.now()).count)
        add("damaged_rows", "gauge", "Stored rows found unreadable since the start.", store.damagedRows.count)
        add("data_key_seals", "gauge", "Rows the current data key has sealed.", store.dataKeyUse.sealCount)
        add(
            "keys_waiting", "gauge", "Keys of the gateway's own that wait to be promoted.",
            keys.keyring.keys.count { $0.state == .preActivation })
        add(
            "keys_locked", "gauge", "Whether the memory of keys is locked.",
            SecretMemory.protection.isLocked ? 1 : 0)
        add(
            "secrets_outside", "gauge", "Secrets that found no room in the protected memory.",
            SecretMemory.outsideCount)
        if let free = try? DiskSpace.freeByteCount(at: stateDirectory) {
            add("disk_free_bytes", "gauge", "Bytes free where the store lives.", free)
        }
        guard let endpoint = endpoint() else { return text }
        add("connections_total", "counter", "Connections accepted.", endpoint.connectionsAccepted)
        add("connections_refused_total", "counter", "Connections over a bound.", endpoint.connectionsRefused)
        add("requests_total", "counter", "Complete requests.", endpoint.requests)
        add("streams_total", "counter", "Streams opened.", endpoint.streams)
        add("stream_lines_total", "counter", "Lines of streams.", endpoint.streamLines)
        add("endpoint_problems_total", "counter", "Answers the endpoint gave itself.", endpoint.problems)
        add("bytes_read_total", "counter", "Bytes read from sockets.", endpoint.bytesRead)
        add("bytes_written_total", "counter", "Bytes handed to sockets.", endpoint.bytesWritten)
        add("idle_timeouts_total", "counter", "Connections closed for being idle.", endpoint.idleTimeouts)
        add("read_timeouts_total", "counter", "Requests that came too slowly.", endpoint.readTimeouts)
        add("write_stalls_total", "counter", "Clients that did not read.", endpoint.writeStalls)
        add(
            "answers_missing_total", "counter", "Requests without an answer in time.", endpoint.answersMissing
        )
        add("connections_open", "gauge", "Connections open.", endpoint.connectionsOpen)
        add("requests_in_flight", "gauge", "Requests under way.", endpoint.requestsInFlight)
        add("buffered_bytes", "gauge", "Bytes of bodies held.", endpoint.bufferedByteCount)
        return text
    }
}
