import AuditTrail
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
    let privateKeys: any PrivateKeys
    var limits: EngineLimits
    let stateDirectory: String
    let persons: PersonCount
    let statePass: StatePass
    let pruning: TrailPruning
    let endpoint: @Sendable () -> EndpointMetrics?

    /// Lag of the published trail at which the gateway calls itself unready, in milliseconds.
    /// Sends are refused later, at ``EngineLimits/publishLagMillisecondsMax``.
    static let unreadyLagMilliseconds: Int64 = 5_000

    /// Whether a send would be taken now. What is only worth knowing passes, and says so in its detail.
    func checks() -> [ReadinessAnswer.Check] {
        [storeCheck, diskCheck, trailCheck, outboxCheck, policyCheck, keysCheck, reviewsCheck]
    }

    /// Passes whatever it says: that many switch something off stops no send by itself.
    private var reviewsCheck: ReadinessAnswer.Check {
        guard let reviews = try? disableReviews() else {
            return .init(name: "reviews", isPassed: true, detail: "cannot be read")
        }
        let details = reviews.map { category, day in
            "far more than usual switched `\(category.rawValue)` off within 24 hours of a send of it on \(Instant(seconds: day * 86_400).rfc3339.prefix(10)); look at what was sent"
        }
        return .init(
            name: "reviews", isPassed: true, detail: details.isEmpty ? nil : details.joined(separator: "; "))
    }

    private func disableReviews() throws -> [(category: Category, day: DisableDays.Day)] {
        try store.read { try $0.disableDays() }.reviews(at: clock.now())
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
        let isLost = { (key: GatewayKey) in
            (key.state == .preActivation || key.state == .suspended) && !privateKeys.isLoaded(key.id)
        }
        if let key = keyring.keys.first(where: isLost) {
            details.append(
                "key `\(key.id)`, which is `\(key.state.rawValue)`, cannot come into use: its file is not there, or was not at the start"
            )
        }
        if let remark = keysetRemark() { details.append(remark) }
        if !SecretMemory.protection.isLocked {
            details.append(
                "keys are not locked in memory; raise the limit (`LimitMEMLOCK=` in systemd, `ulimit -l`)")
        }
        return .init(
            name: "keys", isPassed: !use.isExhausted && hasOrigin,
            detail: details.isEmpty ? nil : details.joined(separator: "; "))
    }

    /// How long before its end a keyset is told of: 30 days, in seconds.
    static let keysetNoticeSeconds: Int64 = 30 * 86_400

    /// What is said of a keyset in force that has expired, or soon does; no send stops for it.
    private func keysetRemark() -> String? {
        do {
            guard let keyset = try store.read({ try $0.keyset() }) else { return nil }
            let (end, now) = (keyset.end, clock.now())
            if end <= now {
                return
                    "the keyset in force, version \(keyset.version), expired at \(end.rfc3339), and apps and auditors refuse it; have the authority sign a new one"
            }
            guard end < now.advanced(bySeconds: Self.keysetNoticeSeconds) else { return nil }
            return
                "the keyset in force, version \(keyset.version), expires at \(end.rfc3339); have the authority sign the next one before"
        } catch {
            return "the keyset in force cannot be read: \(error)"
        }
    }

    /// How many damaged places a check names; the log has all of them.
    private static let damageCountShown = 5

    /// What is stored otherwise than the trail tells.
    private func differenceDetail() -> String? {
        // Damage that the pass met is told as such.
        let damaged = Set(store.damages.map(\.description))
        let found = statePass.differences.filter { !damaged.contains($0.what) }
        guard !found.isEmpty else { return nil }
        return
            "not as it happened: \(Self.first(of: found)); marketing is switched off for each person named, with each pass that finds it so"
    }

    private func damageDetail() -> String? {
        let damaged = store.damages
        guard !damaged.isEmpty else { return nil }
        return "\(Self.first(of: damaged)); what needs them is refused, everything else goes on"
    }

    private static func first(of found: [some CustomStringConvertible]) -> String {
        let shown = found.prefix(damageCountShown).map(\.description).joined(separator: "; ")
        let more = found.count - damageCountShown
        return more > 0 ? "\(shown); and \(more) more" : shown
    }

    private var storeCheck: ReadinessAnswer.Check {
        do {
            _ = try store.read { try $0.entryCount() }
            let details = [damageDetail(), differenceDetail()].compactMap(\.self)
            return .init(
                name: "store", isPassed: true,
                detail: details.isEmpty ? nil : details.joined(separator: "; "))
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
        detail = [detail, pruning.status.remark].compactMap(\.self).joined(separator: "; ")
        if detail?.isEmpty == true { detail = nil }
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
        if let obstacle = health.misconfiguration ?? health.obstacle {
            detail =
                (detail ?? "\(depth.rowCount) messages wait") + "; the next hop cannot be used: \(obstacle)"
        }
        let reasons = health.waitingReasons(at: clock.reading().uptime)
        if let first = reasons.first, depth.rowCount > 0 {
            let more = reasons.count > 1 ? " and \(reasons.count - 1) more" : ""
            detail =
                (detail.map { $0 + "; " } ?? "\(depth.rowCount) messages wait; ")
                + "the delivery layer said of \(first)\(more)"
        }
        // Nothing that waits for a wrong configuration goes by itself.
        let isMisconfigured = health.misconfiguration != nil
        return .init(name: "outbox", isPassed: !isFull && !isMisconfigured, detail: detail)
    }

    /// Passes whatever it says: a bundle without an approval, or a review that is due, stops no send by itself.
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

    /// How long before its day a review is told of: 60 days, in seconds.
    static let reviewNoticeSeconds: Int64 = 60 * 86_400

    /// Adds to `/metrics` what the parts around the engine know.
    func addMetrics(to page: inout Exposition) {
        persons.write(to: &page)
        if let reviews = try? disableReviews() {
            for category in Category.allCases {
                page.add(
                    .reviewsToLookAt, [category.rawValue],
                    isTrue: reviews.contains { $0.category == category })
            }
        }
        // Before the first audit there is no run, and so none under way.
        if let newest = try? store.read({ try [$0.driftRun()] }) {
            let run = newest[0]
            page.add(.driftRunUnderWay, [], isTrue: run?.isUnderWay == true)
            if let finishedAt = run?.auditFinishedAt {
                let age = clock.now().milliseconds - finishedAt.milliseconds
                page.add(.driftRunAge, [], .milliseconds(max(0, age)))
            }
        }
        page.add(.publishedEntries, [], publisher.publishedSize)
        let pruned = pruning.status
        page.add(.firstKeptEntry, [], pruned.head?.size ?? 0)
        if let at = pruned.snapshotAt { page.add(.snapshotTime, [], .integer(at.seconds)) }
        page.add(.hopReachable, [], isTrue: health.isHopReachable)
        addPolicy(to: &page)
        addKeys(to: &page)
        page.add(.storeDamage, [], store.damages.count)
        let pages = store.pageCheck
        page.add(.checkedPages, [], .integer(pages.checkedPageCount))
        page.add(.pageChecks, [], .integer(pages.passCount))
        let compared = statePass.counts
        page.add(.stateDifferences, [], statePass.differences.count)
        page.add(.comparedState, [], .integer(compared.compared))
        page.add(.stateAudits, [], .integer(compared.passes))
        if let free = try? DiskSpace.freeByteCount(at: stateDirectory) {
            page.add(.freeDisk, [], .integer(free))
        }
        guard let endpoint = endpoint() else { return }
        page.add(.connections, [], endpoint[.connectionsAccepted])
        page.add(.refusedConnections, [], endpoint[.connectionsRefused])
        page.add(.requests, [], endpoint[.requests])
        page.add(.streams, [], endpoint[.streams])
        page.add(.streamLines, [], endpoint[.streamLines])
        page.add(.endpointProblems, [], endpoint[.problems])
        page.add(.bytesRead, [], endpoint[.bytesRead])
        page.add(.bytesWritten, [], endpoint[.bytesWritten])
        page.add(.idleTimeouts, [], endpoint[.idleTimeouts])
        page.add(.readTimeouts, [], endpoint[.readTimeouts])
        page.add(.writeStalls, [], endpoint[.writeStalls])
        page.add(.missingAnswers, [], endpoint[.answersMissing])
        page.add(.openConnections, [], endpoint.connectionsOpen)
        page.add(.requestsInFlight, [], endpoint.requestsInFlight)
        page.add(.bufferedBytes, [], endpoint.bufferedByteCount)
    }

    private func addPolicy(to page: inout Exposition) {
        let policy = policy.current
        let (bundle, now) = (policy.bundle, clock.now())
        let roles = Set(policy.approvals.map(\.role.rawValue)).sorted().joined(separator: ",")
        page.add(.policyRefused, [], isTrue: reloads.lastRefusal != nil)
        page.add(.policyInfo, [bundle.digest.text, bundle.reviewedDigest.text, roles], 1)
        let lapsed = bundle.lapsedReviews(at: now).count
        let soon = bundle.lapsedReviews(at: now.advanced(bySeconds: Self.reviewNoticeSeconds)).count
        page.add(.lapsedReviews, [], lapsed)
        page.add(.reviewsDueSoon, [], soon - lapsed)
    }

    private func addKeys(to page: inout Exposition) {
        let (keyring, use, now) = (keys.keyring, store.dataKeyUse, clock.now())
        page.add(.dataKeySeals, [], use.sealCount)
        page.add(.keysWaiting, [], keyring.keys.count { $0.state == .preActivation })
        for purpose in KeyAge.watched {
            let age = KeyAge.seconds(of: purpose, in: keyring, at: now)
            let isDue = age.map { $0 > KeyAge.secondsMax } ?? false
            page.add(
                .keysToRotate, [purpose.rawValue], isTrue: isDue || purpose == .data && use.mustRotate)
            if let age { page.add(.keyAge, [purpose.rawValue], .integer(age)) }
        }
        if let keyset = try? store.read({ try $0.keyset() }) {
            page.add(.keysetEnd, [], .integer(keyset.end.seconds))
        }
        page.add(.keysLocked, [], isTrue: SecretMemory.protection.isLocked)
        page.add(.secretsOutside, [], SecretMemory.outsideCount)
    }
}

extension Keyset {
    /// From this moment on it is refused.
    fileprivate var end: Instant { Instant(seconds: Int64(expiresAt)) }
}
