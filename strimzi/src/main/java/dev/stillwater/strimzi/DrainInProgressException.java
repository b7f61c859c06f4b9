package dev.stillwater.strimzi;

/** A reconciliation is refused because a Kafka node is out; the message is what the status shows. */
public final class DrainInProgressException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DrainInProgressException(String message) {
        // The operator logs it with its trace, of which nobody learns anything.
        super(message, null, false, false);
    }
}
