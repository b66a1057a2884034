/// When the gateway audits drift by itself, and how fast any audit goes.
struct DriftSchedule: Hashable, Sendable {
    /// From the beginning of one run to that of the next, in milliseconds; S1 asks for a weekly one. `nil` begins none.
    var intervalMilliseconds: Int64? = 7 * 86_400_000
    /// Recipients looked at in a second; ten million take five and a half hours.
    var personCountPerSecond = 500
}

extension DriftSchedule {
    var pace: DriftPace { DriftPace(personsPerSecond: personCountPerSecond) }
}

/// The pieces a drift audit goes on in: persons examined in one engine operation, and the pause after it.
///
/// The work of a piece comes on top of the pause, so a run is never faster than the limit.
struct DriftPace: Hashable, Sendable {
    /// Pieces in a second; a higher limit than this many times ``personCountPerPieceMax`` has more of them.
    private static let pieceCountPerSecond = 10
    /// A send that arrives while a piece is examined waits for the end of the piece.
    static let personCountPerPieceMax = 100

    let personCountPerPiece: Int
    let pause: Duration

    /// - Parameter personsPerSecond: At least 1.
    init(personsPerSecond: Int) {
        let limit = max(1, personsPerSecond)
        personCountPerPiece = min(max(1, limit / Self.pieceCountPerSecond), Self.personCountPerPieceMax)
        // Rounded up: a shorter pause would exceed the limit.
        pause = .microseconds((personCountPerPiece * 1_000_000 + limit - 1) / limit)
    }
}
