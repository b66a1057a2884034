/// A moment, in milliseconds since 1970-01-01T00:00:00Z (leap seconds ignored, as in POSIX).
///
/// Layers 0 to 2 never ask for the time: an `Instant` always arrives as an argument.
@usableFromInline
package struct Instant: Hashable, Comparable, Sendable {
    @usableFromInline package var milliseconds: Int64

    @inlinable
    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package init(seconds: Int64) {
        self.milliseconds = seconds * 1000
    }

    /// Whole Unix seconds, rounded towards the past.
    package var seconds: Int64 {
        milliseconds >= 0 ? milliseconds / 1000 : -((-milliseconds + 999) / 1000)
    }

    @inlinable
    package static func < (earlier: Instant, later: Instant) -> Bool {
        earlier.milliseconds < later.milliseconds
    }

    @inlinable
    package func advanced(bySeconds seconds: Int64) -> Instant {
        Instant(milliseconds: milliseconds + seconds * 1000)
    }

    @inlinable
    package func advanced(byMilliseconds milliseconds: Int64) -> Instant {
        Instant(milliseconds: self.milliseconds + milliseconds)
    }
}
