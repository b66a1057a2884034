import GateSteps
import GateVocabulary
import KeyLifecycle

extension MetricLabel {
    /// Callers that have series of their own; those who come after count as `other`. A bundle has a dozen.
    package static let callerCountMax = 64
    /// The same for types of mandatory notices.
    package static let typeCountMax = 64
    /// Stands for the category and the tier of a type that is in no bundle.
    package static let unregistered = "unregistered"
    /// Stands for a caller or type over the bound.
    package static let other = "other"

    static let outcome = MetricLabel("outcome", Outcome.allCases.map(\.name))
    static let reason = MetricLabel("reason", Reason.allCases.map(\.rawValue))
    static let category = MetricLabel("category", Category.allCases.map(\.rawValue))
    static let anyCategory = MetricLabel("category", Category.allCases.map(\.rawValue) + [unregistered])
    static let disabledCategory = MetricLabel("category", Category.allCases.map(\.rawValue) + ["none"])
    static let tier = MetricLabel("tier", Tier.allCases.map(\.rawValue))
    static let anyTier = MetricLabel("tier", Tier.allCases.map(\.rawValue) + [unregistered])
    static let channel = MetricLabel("channel", Channel.allCases.map(\.rawValue))
    static let caller = MetricLabel(
        "caller", .registered(what: "callers of the bundle", countMax: callerCountMax))
    static let type = MetricLabel(
        "type", .registered(what: "mandatory types of the bundle", countMax: typeCountMax))
}

extension MetricFamily {
    // MARK: Decisions

    package static let decisions = MetricFamily(
        .counter, "decisions_total",
        "Sends decided and recorded, each once, by the outcome of the whole send.",
        by: [.outcome, .reason, .anyCategory, .anyTier, .channel, .caller])
    package static let shadowDecisions = MetricFamily(
        .counter, "shadow_decisions_total",
        "Sends decided and recorded only, on a listener in shadow, by what enforcing would have come to.",
        by: [.outcome, .reason, .anyCategory, .channel])
    package static let redecisions = MetricFamily(
        .counter, "redecisions_total", "Waiting messages decided again.",
        by: [
            .outcome, .reason, .category, .tier,
            MetricLabel("cause", WithdrawalCause.allCases.map(\.rawValue)),
        ])
    package static let withdrawals = MetricFamily(
        .counter, "withdrawn_messages_total",
        "Waiting messages taken out without being decided again or handed over.",
        by: [MetricLabel("cause", WithdrawalCause.allCases.map(\.rawValue)), .category])
    package static let unreached = MetricFamily(
        .counter, "mandatory_unreached_total", "Notices the law demands that reached nobody.", by: [.type])

    // MARK: Hand-overs and receipts

    package static let handOvers = MetricFamily(
        .counter, "hand_overs_total", "Messages whose hand-over to the next hop ended.",
        by: [MetricLabel("result", HandOver.allCases.map(\.rawValue)), .channel, .category, .tier])
    package static let retries = MetricFamily(
        .counter, "hand_over_retries_total", "Hand-overs that failed and are tried again.",
        by: [MetricLabel("obstacle", HandOverObstacle.allCases.map(\.rawValue)), .channel, .tier])
    /// The bounds include S3's targets, so that the sends within a target are counted exactly.
    package static let timeToAccept = MetricFamily(
        .histogram, "time_to_accept_seconds",
        "From when a message could go to when the next hop had taken it.", by: [.tier],
        boundsMilliseconds: [
            100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
            3_600_000,
        ])
    package static let receipts = MetricFamily(
        .counter, "receipts_total",
        "Receipts of messages, from the delivery layer and the apps; a message with several counts several times.",
        by: [
            MetricLabel("event", SendEventKind.allCases.map(\.rawValue)), .anyCategory, .channel,
        ])
    package static let taps = MetricFamily(
        .counter, "taps_total",
        "Messages the recipient acted on, each destination once, as the app reported.",
        by: [.anyCategory, .channel])
    package static let timeToOpen = MetricFamily(
        .histogram, "time_to_open_seconds",
        "From the hand-over to when the recipient first saw the message, as the app reported.",
        by: [.anyCategory],
        boundsMilliseconds: [
            1_000, 10_000, 30_000, 60_000, 300_000, 900_000, 1_800_000, 3_600_000, 14_400_000, 43_200_000,
            86_400_000, 259_200_000,
        ])

    // MARK: People

    package static let disables = MetricFamily(
        .counter, "disables_total",
        "Categories that recipients switched off; of a switch of everything, each they were sent in the 24 hours before, or none.",
        by: [MetricLabel("means", DisabledBy.allCases.map(\.rawValue)), .disabledCategory])
    package static let disablesAfterSend = MetricFamily(
        .counter, "disables_after_send_total",
        "Recipients who switched the category off within 24 hours of a forwarded send of it, each once a UTC day.",
        by: [MetricLabel("means", DisabledBy.allCases.map(\.rawValue)), .category])
    package static let replies = MetricFamily(
        .counter, "replies_total",
        "Replies of recipients, by what each came to. A rising share of `nothing_known_here` means that numbers are not recognised.",
        by: [MetricLabel("effect", ReplyEffect.allCases.map(\.rawValue)), .channel])
    package static let reviews = MetricFamily(
        .counter, "reviews_total", "What the gateway found that a person has to look at.",
        by: [MetricLabel("cause", ReviewCause.allCases.map(\.rawValue)), .category])
    package static let reviewsToLookAt = MetricFamily(
        .gauge, "reviews_to_look_at",
        "Whether a review of the category was raised in the last 7 days, today among them.", by: [.category])
    package static let persons = MetricFamily(
        .gauge, "persons", "Registered recipients, as of the last whole count.")
    package static let reachablePersons = MetricFamily(
        .gauge, "reachable_persons",
        "Recipients with a destination on the channel, as of the last whole count.", by: [.channel])
    package static let optedInPersons = MetricFamily(
        .gauge, "opted_in_persons",
        "Recipients whom neither consent, nor preference, nor the phone keeps from getting the category, as of the last whole count.",
        by: [.category, .channel])
    package static let personsCountAge = MetricFamily(
        .gauge, "persons_count_age_seconds", "Age of the last whole count of recipients.")

    // MARK: Drift

    package static let drifts = MetricFamily(
        .counter, "drifts_total",
        "Drifts between the app, the provider and the operating system that an audit recorded, each when it was new, changed or no more.",
        by: [
            MetricLabel("finding", DriftKind.allCases.map(\.rawValue)),
            MetricLabel("action", DriftAction.allCases.map(\.rawValue)),
        ])
    package static let driftRunUnderWay = MetricFamily(
        .gauge, "drift_run_under_way", "Whether a drift audit is going over the recipients.")
    package static let driftRunAge = MetricFamily(
        .gauge, "drift_run_age_seconds",
        "Seconds since the last drift audit over all recipients finished; absent before the first.")

    // MARK: Engine, trail, outbox

    package static let batches = MetricFamily(.counter, "batches_total", "Transactions committed.")
    package static let operationCount = MetricFamily(
        .counter, "operations_total", "Operations committed, sends among them.")
    package static let failedBatches = MetricFamily(
        .counter, "failed_batches_total", "Transactions that could not be committed.")
    package static let queued = MetricFamily(
        .gauge, "queued_operations", "Operations waiting for the engine.")
    package static let publishLag = MetricFamily(
        .gauge, "publish_lag_seconds", "Age of the oldest unpublished entry.")
    package static let trailEntries = MetricFamily(.gauge, "trail_entries", "Entries of the trail.")
    package static let publishedEntries = MetricFamily(
        .gauge, "trail_published_entries", "Entries under the newest checkpoint.")
    package static let firstKeptEntry = MetricFamily(
        .gauge, "trail_first_kept_entry",
        "The entry before which the trail was pruned; 0 where it was not.")
    package static let snapshotTime = MetricFamily(
        .gauge, "trail_snapshot_timestamp_seconds",
        "When the snapshot in force was recorded, in Unix seconds; absent where nothing was pruned.")
    package static let outboxRows = MetricFamily(.gauge, "outbox_rows", "Messages waiting to be handed over.")
    package static let outboxBytes = MetricFamily(.gauge, "outbox_bytes", "Bytes of bodies waiting.")
    package static let outboxStates = MetricFamily(
        .gauge, "outbox_messages",
        "Messages waiting, by where they wait: offered to the relay, or in the store.",
        by: [MetricLabel("state", ["offered", "stored"])])
    package static let outboxDueAge = MetricFamily(
        .gauge, "outbox_oldest_due_seconds",
        "How long the message that is due longest, and that the relay does not have, has been due; 0 when none is.",
        by: [MetricLabel("lane", DeliveryLane.allCases.map(\.rawValue))])
    package static let hopReachable = MetricFamily(
        .gauge, "hop_reachable", "Whether the next hop answers as a delivery layer does.")

    // MARK: Bundle, keys, store

    package static let policyRefused = MetricFamily(
        .gauge, "policy_refused", "Whether the last reload was refused.")
    package static let policyInfo = MetricFamily(
        .gauge, "policy_info", "The bundle in force.",
        by: [
            MetricLabel("digest", .one(what: "of the bundle in force")),
            MetricLabel("reviewed", .one(what: "of its pages as they were reviewed")),
            MetricLabel("approved", .one(what: "the roles that signed it")),
        ])
    package static let lapsedReviews = MetricFamily(
        .gauge, "policy_reviews_lapsed", "Mandatory types whose review is due.")
    package static let reviewsDueSoon = MetricFamily(
        .gauge, "policy_reviews_due_soon",
        "Mandatory types whose review falls due within 60 days, those that are due not among them.")
    package static let storeDamage = MetricFamily(
        .gauge, "store_damage", "Stored pages, and values on them, found damaged since the start.")
    package static let checkedPages = MetricFamily(
        .counter, "checked_pages_total", "Stored pages read and held against their codes.")
    package static let pageChecks = MetricFamily(
        .counter, "page_checks_total", "Passes over all stored pages that have ended.")
    package static let stateDifferences = MetricFamily(
        .gauge, "state_differences",
        "Things stored otherwise than the trail tells, 100 of a share of the people at most.")
    package static let comparedState = MetricFamily(
        .counter, "compared_state_total", "People, sends and keys held against the trail.")
    package static let stateAudits = MetricFamily(
        .counter, "state_audits_total",
        "Passes over everything that is stored, against the trail, that have ended.")
    package static let dataKeySeals = MetricFamily(
        .gauge, "data_key_seals", "Rows the current data key has sealed.")
    package static let keysWaiting = MetricFamily(
        .gauge, "keys_waiting", "Keys of the gateway's own that wait to be promoted.")
    package static let keysToRotate = MetricFamily(
        .gauge, "keys_to_rotate", "Keys in use that are due to be replaced.",
        by: [MetricLabel("purpose", KeyAge.watched.map(\.rawValue))])
    package static let keyAge = MetricFamily(
        .gauge, "key_age_seconds", "How long the key in use has been in use.",
        by: [MetricLabel("purpose", KeyAge.watched.map(\.rawValue))])
    package static let keysetEnd = MetricFamily(
        .gauge, "keyset_expiry_timestamp_seconds",
        "When the keyset in force expires, in Unix seconds; absent where none is.")
    package static let keysLocked = MetricFamily(
        .gauge, "keys_locked", "Whether the memory of keys is locked.")
    package static let secretsOutside = MetricFamily(
        .gauge, "secrets_outside", "Secrets that found no room in the protected memory.")
    package static let freeDisk = MetricFamily(
        .gauge, "disk_free_bytes", "Bytes free where the store lives.")

    // MARK: Sockets

    package static let connections = MetricFamily(.counter, "connections_total", "Connections accepted.")
    package static let refusedConnections = MetricFamily(
        .counter, "connections_refused_total", "Connections over a bound.")
    package static let requests = MetricFamily(.counter, "requests_total", "Complete requests.")
    package static let streams = MetricFamily(.counter, "streams_total", "Streams opened.")
    package static let streamLines = MetricFamily(.counter, "stream_lines_total", "Lines of streams.")
    package static let endpointProblems = MetricFamily(
        .counter, "endpoint_problems_total", "Answers the endpoint gave itself.")
    package static let bytesRead = MetricFamily(.counter, "bytes_read_total", "Bytes read from sockets.")
    package static let bytesWritten = MetricFamily(
        .counter, "bytes_written_total", "Bytes handed to sockets.")
    package static let idleTimeouts = MetricFamily(
        .counter, "idle_timeouts_total", "Connections closed for being idle.")
    package static let readTimeouts = MetricFamily(
        .counter, "read_timeouts_total", "Requests that came too slowly.")
    package static let writeStalls = MetricFamily(
        .counter, "write_stalls_total", "Clients that did not read.")
    package static let missingAnswers = MetricFamily(
        .counter, "answers_missing_total", "Requests without an answer in time.")
    package static let openConnections = MetricFamily(.gauge, "connections_open", "Connections open.")
    package static let requestsInFlight = MetricFamily(.gauge, "requests_in_flight", "Requests under way.")
    package static let bufferedBytes = MetricFamily(.gauge, "buffered_bytes", "Bytes of bodies held.")

    /// Every family there is, in the order of `/metrics` and of the handbook.
    package static let all: [MetricFamily] = [
        decisions, shadowDecisions, redecisions, withdrawals, unreached, handOvers, retries, timeToAccept,
        receipts, taps,
        timeToOpen, disables, disablesAfterSend, replies, reviews, reviewsToLookAt, persons, reachablePersons,
        optedInPersons, personsCountAge, drifts, driftRunUnderWay, driftRunAge, batches, operationCount,
        failedBatches, queued, publishLag,
        trailEntries, publishedEntries, firstKeptEntry, snapshotTime,
        outboxRows, outboxBytes, outboxStates, outboxDueAge, hopReachable, policyRefused, policyInfo,
        lapsedReviews, reviewsDueSoon, storeDamage, checkedPages, pageChecks, stateDifferences,
        comparedState, stateAudits, dataKeySeals, keysWaiting,
        keysToRotate, keyAge,
        keysetEnd, keysLocked, secretsOutside, freeDisk, connections, refusedConnections, requests, streams,
        streamLines, endpointProblems, bytesRead, bytesWritten, idleTimeouts, readTimeouts, writeStalls,
        missingAnswers,
        openConnections, requestsInFlight, bufferedBytes,
    ]
}
