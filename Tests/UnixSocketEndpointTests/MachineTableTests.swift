import GatewayPipeline
import NIOCore
import NIOHTTP1
import Testing
import WireProtocol

@testable import UnixSocketEndpoint

/// Every state of a connection's machine against every event.
@Suite struct MachineTableTests {
    /// A way into a state, with what makes a difference there.
    enum Setup: String, CaseIterable {
        case idle
        case idleWaiting = "idle, a request waiting"
        case head
        case body
        case stream
        case streamWaiting = "stream, a line waiting"
        case answeringLast = "answering the last"
        case answering
        case lingering
        case closing = "closing when written"
        case stalled = "idle, an answer not written"
        case closed

        var driver: MachineDriver {
            var driver = MachineDriver()
            driver.take(.active)
            switch self {
            case .idle: break
            case .idleWaiting: driver.request()
            case .head: driver.take(.received(byteCount: 1), .parsed, .readComplete)
            case .body:
                driver.take(
                    .received(byteCount: 1), .head(driver.head(byteCount: 20_000)), .parsed, .readComplete)
            case .stream:
                driver.take(.received(byteCount: 1), .head(driver.liveHead), .parsed, .readComplete)
            case .streamWaiting:
                driver.take(
                    .received(byteCount: 1), .head(driver.liveHead), .body(ByteBuffer(string: "one\ntw")),
                    .parsed, .readComplete)
            case .answeringLast: driver.request(closes: true)
            case .answering:
                driver.request()
                driver.take(.inputClosed)
            case .lingering: driver.take(.parserFailed(.malformed))
            case .closing:
                driver.unwrittenByteCount = 10
                driver.request()
                driver.take(.inputClosed)
                driver.answer("x", to: 0)
            case .stalled:
                driver.take(.outputMeasured(OutputMeasure(unwrittenByteCount: 9, writtenByteCount: 0)))
            case .closed: driver.take(.cut)
            }
            return driver
        }

        /// Whether the handler has a request, so that an answer can come.
        var isWaiting: Bool {
            switch self {
            case .idle, .head, .body, .stream, .stalled: false
            case .idleWaiting, .streamWaiting, .answeringLast, .answering, .lingering, .closing, .closed: true
            }
        }
    }

    static let events: [(name: String, event: ConnectionEvent)] = {
        let driver = MachineDriver()
        // The head of a live stream is not read while its line waits for its answer, so sequence 1 is its line's.
        return [
            ("active", .active),
            ("received", .received(byteCount: 10)),
            ("head", .head(driver.head(.GET, "/x"))),
            ("refused head", .head(.failure(.malformed))),
            ("body", .body(ByteBuffer(string: "abc\n"))),
            ("end", .end),
            ("headers too large", .parserFailed(.headersTooLarge)),
            ("malformed", .parserFailed(.malformed)),
            ("decoder finished", .parserFailed(.decoderFinished)),
            ("parsed", .parsed),
            ("read complete", .readComplete),
            ("input closed", .inputClosed),
            ("channel failed", .channelFailed),
            ("channel closed", .channelClosed),
            ("not writable", .writabilityChanged(isWritable: false)),
            ("writable", .writabilityChanged(isWritable: true)),
            ("answers delivered", .answersDelivered),
            ("reserved", .reservation(byteCount: 7, isGranted: true)),
            ("not reserved", .reservation(byteCount: 7, isGranted: false)),
            ("written", .outputMeasured(OutputMeasure(unwrittenByteCount: 0, writtenByteCount: 9))),
            ("unwritten", .outputMeasured(OutputMeasure(unwrittenByteCount: 9, writtenByteCount: 9))),
            ("write stall fires", .fired(.writeStall)),
            ("linger fires", .fired(.linger)),
            ("answer fires", .fired(.answer)),
            ("request fires", .fired(.request)),
            ("idle fires", .fired(.idle)),
            ("resumed", .resumed),
            ("drain", .drain),
            ("end unused", .endUnused),
            ("cut", .cut),
        ]
    }()

    /// What each event does in each state: the state after it, and the actions. An event that is not named leaves the state as it
    /// is and asks for nothing.
    static let effects: [Setup: [String: (state: String, actions: [String])]] = [
        .idle: [
            "active": ("idle", ["read", "arm idle"]),
            "head": ("body", []),
            "refused head": ("answering", []),
            "headers too large": (
                "lingering",
                [
                    "write headersTooLarge 16384, closes", "flush", "disarm idle",
                    "arm linger", "end output", "read",
                ]
            ),
            "malformed": (
                "lingering",
                [
                    "write malformedRequest, closes", "flush", "disarm idle", "arm linger", "end output",
                    "read",
                ]
            ),
            "decoder finished": ("idle", ["read", "arm idle"]),
            "parsed": ("head", []),
            "read complete": ("idle", ["read", "arm idle"]),
            "input closed": ("closed", ["disarm idle", "arm linger", "end output", "measure", "close"]),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("idle", ["read", "arm idle"]),
            "answers delivered": ("idle", ["read", "arm idle"]),
            "reserved": ("idle", ["release 7"]),
            "unwritten": ("idle", ["arm writeStall"]),
            "idle fires": (
                "lingering",
                [
                    "disarm idle", "record idleTimeout", "arm linger", "end output", "read",
                ]
            ),
            "resumed": ("idle", ["read", "arm idle"]),
            // Nothing has been asked on it yet.
            "drain": ("idle", ["read", "arm idle"]),
            "cut": ("closed", ["close"]),
        ],
        .idleWaiting: [
            "active": ("idle", ["read"]),
            "head": ("body", []),
            "refused head": ("answering", []),
            "headers too large": ("answering", []),
            "malformed": ("answering", []),
            "decoder finished": ("idle", ["read"]),
            "read complete": ("idle", ["read"]),
            "input closed": ("answering", []),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("idle", ["read"]),
            "answers delivered": ("idle", ["read"]),
            "reserved": ("idle", ["release 7"]),
            "unwritten": ("idle", ["arm writeStall"]),
            "answer fires": ("closed", ["record answerLate", "close"]),
            "resumed": ("idle", ["read"]),
            "drain": ("idle", ["read"]),
            "cut": ("closed", ["close"]),
            "dropped": ("closed", ["record answerDropped", "close"]),
        ],
        .head: [
            "active": ("head", ["read"]),
            "head": ("body", []),
            "refused head": ("answering", []),
            "headers too large": (
                "lingering",
                [
                    "write headersTooLarge 16384, closes", "flush", "disarm request",
                    "arm linger", "end output", "read",
                ]
            ),
            "malformed": (
                "lingering",
                [
                    "write malformedRequest, closes", "flush", "disarm request", "arm linger",
                    "end output", "read",
                ]
            ),
            "decoder finished": ("head", ["read"]),
            "read complete": ("head", ["read"]),
            "input closed": ("closed", ["disarm request", "arm linger", "end output", "measure", "close"]),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("head", ["read"]),
            "answers delivered": ("head", ["read"]),
            "reserved": ("head", ["release 7"]),
            "unwritten": ("head", ["arm writeStall"]),
            "request fires": (
                "lingering",
                [
                    "disarm request", "record readTimeout",
                    "write requestTimeout 10000, closes", "flush", "arm linger",
                    "end output", "read",
                ]
            ),
            "resumed": ("head", ["read"]),
            "drain": ("head", ["read"]),
            "cut": ("closed", ["close"]),
        ],
        .body: [
            "active": ("body", ["read"]),
            "end": ("idle", ["release 65536"]),
            "headers too large": (
                "lingering",
                [
                    "release 65536", "write headersTooLarge 16384, closes", "flush",
                    "disarm request", "arm linger", "end output", "read",
                ]
            ),
            "malformed": (
                "lingering",
                [
                    "release 65536", "write malformedRequest, closes", "flush", "disarm request",
                    "arm linger", "end output", "read",
                ]
            ),
            "decoder finished": ("body", ["read"]),
            "read complete": ("body", ["read"]),
            "input closed": (
                "closed",
                [
                    "release 65536", "write malformedRequest, closes", "flush", "disarm request",
                    "arm linger", "end output", "measure", "close",
                ]
            ),
            "channel failed": ("closed", ["release 65536", "close"]),
            "channel closed": ("closed", ["release 65536"]),
            "writable": ("body", ["read"]),
            "answers delivered": ("body", ["read"]),
            "not reserved": ("answering", ["release 65536"]),
            "unwritten": ("body", ["arm writeStall"]),
            "request fires": (
                "lingering",
                [
                    "release 65536", "disarm request", "record readTimeout",
                    "write requestTimeout 10000, closes", "flush", "arm linger",
                    "end output", "read",
                ]
            ),
            "resumed": ("body", ["read"]),
            "drain": ("body", ["read"]),
            "cut": ("closed", ["release 65536", "close"]),
        ],
        .stream: [
            "active": ("stream", ["read", "arm idle"]),
            "end": ("idle", []),
            "headers too large": ("lingering", ["flush", "disarm idle", "arm linger", "end output", "read"]),
            "malformed": ("lingering", ["flush", "disarm idle", "arm linger", "end output", "read"]),
            "decoder finished": ("stream", ["read", "arm idle"]),
            "read complete": ("stream", ["read", "arm idle"]),
            "input closed": (
                "closed",
                [
                    "flush", "disarm idle", "arm linger", "end output", "measure", "close",
                ]
            ),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("stream", ["read", "arm idle"]),
            "answers delivered": ("stream", ["read", "arm idle"]),
            "reserved": ("stream", ["release 7"]),
            "unwritten": ("stream", ["arm writeStall"]),
            "idle fires": (
                "lingering",
                [
                    "disarm idle", "record idleTimeout", "write last chunk", "flush", "arm linger",
                    "end output", "read",
                ]
            ),
            "resumed": ("stream", ["read", "arm idle"]),
            "drain": (
                "lingering",
                [
                    "write last chunk", "flush", "disarm idle", "arm linger", "end output", "read",
                ]
            ),
            "cut": ("closed", ["close"]),
        ],
        .streamWaiting: [
            "active": ("stream", ["read"]),
            "end": ("idle", []),
            "headers too large": ("answering", ["disarm request"]),
            "malformed": ("answering", ["disarm request"]),
            "decoder finished": ("stream", ["read"]),
            "read complete": ("stream", ["read"]),
            "input closed": ("answering", ["disarm request"]),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("stream", ["read"]),
            "answers delivered": ("stream", ["read"]),
            "reserved": ("stream", ["release 7"]),
            "unwritten": ("stream", ["arm writeStall"]),
            "answer fires": ("closed", ["record answerLate", "close"]),
            "request fires": ("answering", ["disarm request", "record readTimeout"]),
            "resumed": ("stream", ["read"]),
            "drain": ("answering", ["disarm request"]),
            "cut": ("closed", ["close"]),
            "dropped": ("closed", ["record answerDropped", "close"]),
        ],
        .answeringLast: [
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "reserved": ("answering the last", ["release 7"]),
            "unwritten": ("answering the last", ["arm writeStall"]),
            "answer fires": ("closed", ["record answerLate", "close"]),
            "cut": ("closed", ["close"]),
            "dropped": ("closed", ["record answerDropped", "close"]),
        ],
        .answering: [
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "reserved": ("answering", ["release 7"]),
            "unwritten": ("answering", ["arm writeStall"]),
            "answer fires": ("closed", ["record answerLate", "close"]),
            "cut": ("closed", ["close"]),
            "dropped": ("closed", ["record answerDropped", "close"]),
        ],
        .lingering: [
            "active": ("lingering", ["read"]),
            "read complete": ("lingering", ["read"]),
            "input closed": ("closed", ["measure", "close"]),
            "channel closed": ("closed", []),
            "reserved": ("lingering", ["release 7"]),
            "unwritten": ("lingering", ["arm writeStall"]),
            "linger fires": ("closed", ["close"]),
            "drain": ("closed", ["measure", "close"]),
            "cut": ("closed", ["close"]),
        ],
        .closing: [
            "input closed": ("closing when written", ["measure"]),
            "channel closed": ("closed", []),
            "reserved": ("closing when written", ["release 7"]),
            "written": ("closed", ["close"]),
            "unwritten": ("closing when written", ["arm writeStall"]),
            "write stall fires": ("closed", ["record writeStall", "close"]),
            "drain": ("closing when written", ["measure"]),
            "cut": ("closed", ["close"]),
        ],
        .stalled: [
            "active": ("idle", ["read", "arm idle"]),
            "head": ("body", []),
            "refused head": ("answering", []),
            "headers too large": (
                "lingering",
                [
                    "write headersTooLarge 16384, closes", "flush", "disarm idle",
                    "arm linger", "end output", "read",
                ]
            ),
            "malformed": (
                "lingering",
                [
                    "write malformedRequest, closes", "flush", "disarm idle", "arm linger", "end output",
                    "read",
                ]
            ),
            "decoder finished": ("idle", ["read", "arm idle"]),
            "parsed": ("head", []),
            "read complete": ("idle", ["read", "arm idle"]),
            "input closed": ("closed", ["disarm idle", "arm linger", "end output", "measure", "close"]),
            "channel failed": ("closed", ["close"]),
            "channel closed": ("closed", []),
            "writable": ("idle", ["read", "arm idle"]),
            "answers delivered": ("idle", ["read", "arm idle"]),
            "reserved": ("idle", ["release 7"]),
            "written": ("idle", ["disarm writeStall"]),
            "unwritten": ("idle", ["arm writeStall"]),
            "write stall fires": ("closed", ["record writeStall", "close"]),
            "idle fires": (
                "lingering",
                [
                    "disarm idle", "record idleTimeout", "arm linger", "end output", "read",
                ]
            ),
            "resumed": ("idle", ["read", "arm idle"]),
            // Nothing has been asked on it yet.
            "drain": ("idle", ["read", "arm idle"]),
            "cut": ("closed", ["close"]),
        ],
        .closed: [
            "reserved": ("closed", ["release 7"])
        ],
    ]

    @Test(arguments: Setup.allCases)
    func `every event does in a state what the table says, and nothing else`(setup: Setup) throws {
        let effects = try #require(Self.effects[setup])
        let names = Set(Self.events.map(\.name) + ["answer", "dropped"])
        #expect(names.isSuperset(of: effects.keys), "the table names an event that is not tried")
        var events = Self.events
        if setup.isWaiting {
            let sequence: UInt64 = setup == .streamWaiting ? 1 : 0
            events.append(("answer", .answer(Answer(status: 200, body: []), sequence: sequence)))
            events.append(("dropped", .answer(nil, sequence: sequence)))
        }
        for (name, event) in events {
            var driver = setup.driver
            let expected = effects[name] ?? (driver.stateName, [])
            let actions = driver.take(event)
            #expect(driver.stateName == expected.state, "\(setup.rawValue), \(name)")
            #expect(actions == expected.actions, "\(setup.rawValue), \(name)")
        }
    }

    /// Whatever happened, a connection that is closed has given back what it took.
    @Test(arguments: Setup.allCases)
    func `a close after any event gives back every reserved byte`(setup: Setup) {
        for (name, event) in Self.events where name != "reserved" {
            var driver = setup.driver
            driver.take(event)
            driver.take(.channelClosed)
            #expect(driver.reservedByteCount == 0, "\(setup.rawValue), \(name)")
            #expect(driver.stateName == "closed", "\(setup.rawValue), \(name)")
        }
    }

    @Test func `an admission that was not asked for stops the process`() async {
        await #expect(processExitsWith: .failure) {
            var driver = MachineDriver()
            driver.take(.active, .admission(isGranted: true))
        }
    }
}
